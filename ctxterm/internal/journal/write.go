package journal

import (
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/terminal"
)

// maxLines is how many bytes of lines are given to the disk at a time, roughly.
const maxLines = 1 << 20

// write is the goroutine that writes, until Close or an error.
func (j *Journal) write() {
	defer close(j.ended)
	err := j.writeAll()
	if err == nil {
		err = j.store.sync()
	}
	j.store.close()
	if err == nil {
		return
	}
	j.mu.Lock()
	j.err, j.waiting = err, batch{}
	j.room.Broadcast()
	j.mu.Unlock()
	j.failed(err)
}

// writeAll writes what comes until Close.
func (j *Journal) writeAll() error {
	gather, sync := time.NewTimer(0), time.NewTimer(0)
	defer gather.Stop()
	defer sync.Stop()
	for {
		select {
		case <-j.work:
		case <-sync.C:
			if err := j.sync(); err != nil {
				return err
			}
			continue
		}
		gather.Reset(libctx.TermEventGather)
		select {
		case <-gather.C:
		case <-j.full:
		}
		next, last := j.take()
		if err := j.put(next); err != nil {
			return err
		}
		switch {
		case last:
			return nil
		case len(next.events) == 0:
		case j.dirty.IsZero():
			j.dirty = time.Now()
			sync.Reset(libctx.TermEventSync)
		case time.Since(j.dirty) >= libctx.TermEventSync:
			if err := j.sync(); err != nil {
				return err
			}
		}
	}
}

func (j *Journal) sync() error {
	if j.dirty.IsZero() {
		return nil
	}
	j.dirty = time.Time{}
	return j.store.sync()
}

// take takes what is waiting, and reports whether there will be no more.
func (j *Journal) take() (b batch, last bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, slot := range []chan struct{}{j.work, j.full} { // what they say of this batch is void
		select {
		case <-slot:
		default:
		}
	}
	b, j.waiting = j.waiting, batch{j.spare.events[:0], j.spare.data[:0]}
	j.room.Broadcast()
	return b, j.closing
}

// put writes the events of a batch, whose memory is used again unless it is that
// of a flood which is over.
func (j *Journal) put(b batch) error {
	defer func() {
		if j.spare = (batch{}); cap(b.data) < maxLines || len(b.data) > maxLines/4 {
			clear(b.events)
			j.spare = b
		}
	}()
	for i := range b.events {
		e := &b.events[i]
		if e.Type == terminal.EventOutput {
			e.Data = b.data[e.from:e.to]
		}
		e.Seq = j.store.last + 1
		before := len(j.lines)
		lines, err := e.Append(j.lines)
		if err != nil {
			return err
		}
		if j.store.size+int64(len(lines)) > j.store.fileBytes {
			if err := j.flush(lines[:before]); err != nil {
				return err
			}
			lines = append(lines[:0], lines[before:]...)
			if err := j.store.rotate(); err != nil {
				return err
			}
		}
		j.lines, j.store.last = lines, e.Seq
		if len(lines) > maxLines {
			if err := j.flush(lines); err != nil {
				return err
			}
		}
	}
	return j.flush(j.lines)
}

// flush writes lines.
func (j *Journal) flush(lines []byte) error {
	j.lines = lines[:0]
	if len(lines) == 0 {
		return nil
	}
	return j.store.append(lines)
}
