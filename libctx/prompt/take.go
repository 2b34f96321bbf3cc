package prompt

import "slices"

// size is what the turn adds to the array: each message with its comma.
func (t *turn) size() (int64, error) {
	if t.sizes == nil {
		sizes := make([]int64, len(t.messages))
		for i, m := range t.messages {
			n, err := sizeOf(m)
			if err != nil {
				return 0, err
			}
			sizes[i] = n + 1
		}
		t.sizes = sizes
	}
	var sum int64
	for _, n := range t.sizes {
		sum += n
	}
	return sum, nil
}

func (f *fitter) keep(t turn, size int64) {
	f.left -= size
	f.kept = append(f.kept, t)
}

func (f *fitter) drop(ts []turn) {
	for _, t := range ts {
		f.dropped += t.rows
	}
}

// shortened is the turn with messages of at most about max bytes, and how many
// of them were shortened.
func (t turn) shortened(most int64) (turn, int, error) {
	if _, err := t.size(); err != nil {
		return t, 0, err
	}
	n := 0
	for i, size := range t.sizes {
		if size <= most {
			continue
		}
		m := clip(t.messages[i], most)
		short, err := sizeOf(m)
		if err != nil {
			return t, 0, err
		}
		if short++; short >= size {
			continue // it consists of small parts
		}
		if n++; n == 1 {
			t.messages, t.sizes = slices.Clone(t.messages), slices.Clone(t.sizes)
		}
		t.messages[i], t.sizes[i] = m, short
	}
	return t, n, nil
}

// takePast keeps the newest turns of earlier runs, long messages shortened, and
// drops the others. What the run leaves of the budget is not all used, but the
// largest of three quarters, half and a quarter of that: so the array begins with
// the same bytes for many turns of the run, and providers reuse what they made
// of them.
func (f *fitter) takePast(ts []turn) error {
	room := f.budget * 3 / 4
	for room > f.left {
		room /= 2
	}
	if room < f.budget/8 {
		room = 0 // every step costs a new begin
	}
	most := f.share()
	for i := len(ts) - 1; i >= 0; i-- {
		t, n, err := ts[i].shortened(most)
		if err != nil {
			return err
		}
		size, err := t.size()
		if err != nil {
			return err
		}
		if room -= size; room < 0 {
			f.drop(ts[:i+1])
			return nil
		}
		f.keep(t, size)
		f.clipped += n
	}
	return nil
}

// share is what one message may take where not all fit.
func (f *fitter) share() int64 { return max(f.budget/16, leastShare) }

// leastShare is the number of bytes to which a message is always shortened at
// most.
const leastShare = 512

// takeRun keeps the turns of the run, newest first, and reports whether it kept
// all of them whole.
func (f *fitter) takeRun(ts []turn) (bool, error) {
	sizes := make([]int64, len(ts))
	var sum int64
	for i := range ts {
		var err error
		if sizes[i], err = ts[i].size(); err != nil {
			return false, err
		}
		sum += sizes[i]
	}
	if sum <= f.left {
		for i, t := range slices.Backward(ts) {
			f.keep(t, sizes[i])
		}
		return true, nil
	}
	said, err := f.said()
	if err != nil {
		return false, err
	}
	if said > f.left {
		return false, tooMuch("the input takes %d bytes, the window has room for %d", said, f.left)
	}
	return false, f.shorten(ts, f.left-said)
}

// shorten keeps of a run that does not fit the user's words, which have their
// room, and in room bytes its newest turns. The oldest leave in steps of an
// eighth of the budget, counted from the begin of the run, for the same reason
// as in takePast.
func (f *fitter) shorten(ts []turn, room int64) error {
	ts = slices.Clone(ts)
	clipped := make([]int, len(ts))
	newest, sum := -1, int64(0)
	for i, t := range slices.Backward(ts) {
		if t.user {
			continue
		}
		var err error
		if newest < 0 {
			newest = i
			ts[i], clipped[i], err = t.shortenedTo(room)
		} else {
			ts[i], clipped[i], err = t.shortened(f.share())
		}
		if err != nil {
			return err
		}
		size, err := ts[i].size()
		if err != nil {
			return err
		}
		sum += size
	}
	step := max(f.budget/8, 1)
	over := (max(0, sum-room) + step - 1) / step * step
	for i := range ts {
		if ts[i].user || i == newest || over <= 0 {
			continue
		}
		size, err := ts[i].size()
		if err != nil {
			return err
		}
		over -= size
		f.drop(ts[i : i+1])
		ts[i].messages = nil
	}
	for i, t := range slices.Backward(ts) {
		if t.messages != nil {
			f.kept = append(f.kept, t)
			f.clipped += clipped[i]
		}
	}
	return nil
}

// shortenedTo is the turn, shortened until it takes at most half of room, or
// failing that all of it.
func (t turn) shortenedTo(room int64) (turn, int, error) {
	for most := room; ; most /= 2 {
		short, n, err := t.shortened(most)
		if err != nil {
			return t, 0, err
		}
		size, err := short.size()
		switch {
		case err != nil:
			return t, 0, err
		case size <= room/2, most <= leastShare && size <= room:
			return short, n, nil
		case most <= leastShare:
			return t, 0, tooMuch("the newest turn of the run takes %d bytes at least, the window has room for %d", size, room)
		}
	}
}
