// Package spill keeps the outputs that results have no room for: as text files
// in the agent's home, one directory a session, the oldest making room for new
// ones.
package spill

import (
	"bytes"
	"crypto/rand"
	"os"
	"path"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool/object"
)

// Place says where outputs are kept. The zero value keeps none.
type Place struct {
	Home string // a directory that is there
	Dir  string // below it, made when it is needed
	Run  string // begin of the files' names; may be empty
}

// Output takes one output of any length, which is valid text, so that fs.read
// shows it. Writing never fails; what went wrong is told by Finish. It is for one
// goroutine.
type Output struct {
	place Place
	small int

	text  []byte // what is not in a file yet
	dir   *atomicfile.Dir
	file  *os.File
	name  string
	kept  int64 // bytes of text in the file
	cut   bool  // there was more
	lines int64
	open  bool // the last line has no LF
	err   error
}

// New keeps outputs of more than small bytes in a file as they come, smaller
// ones in memory until it is known whether they are wanted.
func New(place Place, small int) *Output { return &Output{place: place, small: small} }

// Write takes everything; a piece ends between characters.
func (o *Output) Write(p []byte) (int, error) {
	if o.place.Home != "" && len(p) > 0 {
		o.take(p)
	}
	return len(p), nil
}

func (o *Output) take(text []byte) {
	o.lines += int64(bytes.Count(text, []byte("\n")))
	o.open = text[len(text)-1] != '\n'
	if o.err != nil {
		return
	}
	if room := libctx.MaxSpillFile - o.kept; int64(len(text)) > room {
		text, o.cut = text[:object.Boundary(text[:room])], true
	}
	o.kept += int64(len(text))
	if o.file == nil {
		if o.text = append(o.text, text...); len(o.text) <= o.small {
			return
		}
		o.create()
		return
	}
	if _, err := o.file.Write(text); err != nil {
		o.fail(err)
	}
}

// create makes the file and writes what has come so far.
func (o *Output) create() {
	home, err := atomicfile.OpenDir(o.place.Home)
	if err == nil {
		o.dir, err = home.MkdirAll(o.place.Dir, 0o700)
		if err == nil {
			err = room(home, o.place.Dir)
		}
		home.Close()
	}
	if err == nil {
		o.name = strings.ToLower(rand.Text()[:8]) + ".txt"
		if o.place.Run != "" {
			o.name = o.place.Run + "-" + o.name
		}
		o.file, err = o.dir.Create(o.name, 0o600)
	}
	if err == nil {
		_, err = o.file.Write(o.text)
	}
	if o.text = nil; err != nil {
		o.fail(err)
	}
}

// fail gives up the file: a part that looks like the whole would mislead.
func (o *Output) fail(err error) {
	o.err = err
	if o.file != nil {
		o.file.Close()
		o.dir.Remove(o.name)
		o.file = nil
	}
}

// Kept is an output in a file.
type Kept struct {
	Path  string
	Lines int64 // of the output
	Cut   bool  // the file has only the first libctx.MaxSpillFile bytes, to a whole character
}

// Finish ends the output. If it is wanted it is in a file then, which Kept
// describes, or an error says why not; else nothing of it stays. It is called
// once. ok is false if nothing was to be kept.
func (o *Output) Finish(wanted bool) (k Kept, ok bool, err error) {
	if o.place.Home == "" {
		return Kept{}, false, nil
	}
	if wanted && o.file == nil && o.err == nil {
		o.create()
	}
	if o.dir != nil {
		defer o.dir.Close()
	}
	switch {
	case !wanted:
		if o.file != nil {
			o.fail(nil)
		}
		return Kept{}, false, nil
	case o.err == nil:
		o.err = o.file.Close()
	}
	if o.err != nil {
		return Kept{}, false, errdefs.New(errdefs.KindOf(o.err), "the full output can not be kept: %w", o.err)
	}
	if o.open {
		o.lines++
	}
	return Kept{
		Path: path.Join(o.place.Home, o.place.Dir, o.name), Lines: o.lines, Cut: o.cut,
	}, true, nil
}
