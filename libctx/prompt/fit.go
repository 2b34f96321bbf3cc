package prompt

import (
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/window"
	"cortexfs.org/libctx/wire"
)

// Input is what a message array is made of.
type Input struct {
	System string       // the system message, of Render
	Rows   []Row        // the newest part of the branch, oldest first, with all of the run
	Older  bool         // the branch has more before Rows
	Run    int          // index in Rows of the first message of the run, its user's input; len(Rows) if it has none
	Model  libctx.Model // provider/model that the request goes to
	Window window.Size
}

// Fitted is a message array that fits into a window.
type Fitted struct {
	Messages []modelwire.Message // the system message first; parts share memory with the rows
	Bytes    int64               // of the array as JSON, exactly
	Dropped  int                 // rows that were left out because there was no room
	Clipped  int                 // messages that were shortened
}

// Fit makes the message array of a request. Its bytes as JSON are within
// Window.PromptBytes. Where not all fits,
//
//   - long messages of earlier runs are shortened to head and tail, a sixteenth
//     of the bytes each, then the oldest turns are left out, some at a time;
//   - if the run alone is too long, its own older turns go the same way. What the
//     user said in it stays whole, and its newest turn stays, shortened as far as
//     it must be.
//
// A call and its result stay or go together. If something is left out, the first
// message after the system's says so. errdefs.TooMuch: system message and user's
// input leave no room for the rest.
//
// The work is proportional to Rows: hand over no more of a long branch than
// Window.PromptBytes can hold.
func Fit(in Input) (*Fitted, error) {
	system := modelwire.Message{Role: "system", Content: []wire.Part{wire.Text(in.System)}}
	size, err := sizeOf(system)
	if err != nil {
		return nil, err
	}
	budget := in.Window.PromptBytes(size)
	f := fitter{all: turns(in.Rows, in.Run, in.Model), budget: budget, left: budget - int64(len("[]")) - size}
	if f.left < 0 {
		return nil, tooMuch("the system message takes %d bytes, the window has room for %d", size, budget)
	}
	if err := f.fit(in.Older); err != nil {
		return nil, err
	}
	out := &Fitted{Messages: join(system, f.kept), Dropped: f.dropped, Clipped: f.clipped}
	if out.Bytes, err = sizeOf(out.Messages); err != nil {
		return nil, err
	}
	return out, nil
}

// fitter takes turns, newest first, as long as there is room.
type fitter struct {
	all     []turn // that were not taken yet
	budget  int64  // bytes of the whole array
	left    int64  // of it
	kept    []turn
	dropped int
	clipped int
}

func (f *fitter) fit(older bool) error {
	begin := !older && (len(f.all) == 0 || f.all[0].user)
	note := turn{user: true, messages: []modelwire.Message{{Role: "user", Content: []wire.Part{wire.Text(leftOut)}}}}
	room, err := note.size()
	if err != nil {
		return err
	}
	if begin {
		if all, err := f.whole(f.left); err != nil || all {
			f.kept = f.all
			return err
		}
	}
	said, err := f.said()
	if err != nil {
		return err
	}
	if said+room > f.left {
		// The user's words matter more than the note, and nothing else has room.
		run := f.run()
		f.drop(f.all[:run])
		f.all = f.all[run:]
		return f.newest()
	}
	f.left -= room
	all, err := f.whole(f.left)
	switch {
	case err != nil:
		return err
	case all:
		f.kept = f.all
	default:
		if err := f.newest(); err != nil {
			return err
		}
	}
	if !begin || f.dropped > 0 {
		f.kept = append([]turn{note}, f.kept...)
	}
	return nil
}

// run is the index of the first turn of the run.
func (f *fitter) run() int {
	if i := slices.IndexFunc(f.all, func(t turn) bool { return t.run }); i >= 0 {
		return i
	}
	return len(f.all)
}

// said is what the user's words in the run take.
func (f *fitter) said() (int64, error) {
	var sum int64
	for i := f.run(); i < len(f.all); i++ {
		if !f.all[i].user {
			continue
		}
		size, err := f.all[i].size()
		if err != nil {
			return 0, err
		}
		sum += size
	}
	return sum, nil
}

// newest keeps what there is room for.
func (f *fitter) newest() error {
	run := f.run()
	whole, err := f.takeRun(f.all[run:])
	if err != nil {
		return err
	}
	if whole {
		err = f.takePast(f.all[:run])
	} else {
		f.drop(f.all[:run])
	}
	slices.Reverse(f.kept)
	return err
}

// whole reports whether all turns fit into left bytes as they are. It looks at
// no more than that.
func (f *fitter) whole(left int64) (bool, error) {
	for i := len(f.all) - 1; i >= 0; i-- {
		size, err := f.all[i].size()
		if err != nil {
			return false, err
		}
		if left -= size; left < 0 {
			return false, nil
		}
	}
	return true, nil
}

func tooMuch(why string, args ...any) error {
	return errdefs.New(errdefs.TooMuch, "prompt: "+why, args...).
		WithHint("set a larger window, or shorten the input and what the agent is told")
}
