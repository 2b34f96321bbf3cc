package sandboxrun

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// launch holds the descriptors of one launch. Everything is close-on-exec; what
// bwrap gets is duplicated for it by number.
type launch struct {
	inside []*os.File // bwrap's descriptors, by their number there

	stdin          *os.File // our ends: nil if the payload reads /dev/null
	stdout, stderr *os.File
	status         *os.File // bwrap's records
	gate           *os.File // bwrap goes on when this is written, or closed
	token          *os.File // the entry step goes on only when this is written
	report         *os.File // the entry step's report

	argv []string
}

// prepare makes the descriptors and the command line of a launch. The caller
// closes the launch.
func (l *Launcher) prepare(s sandbox.Spec, stdin bool) (*launch, error) {
	p := &launch{}
	if err := p.fill(l, s, stdin); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *launch) fill(l *Launcher, s sandbox.Spec, stdin bool) error {
	if err := p.streams(stdin); err != nil {
		return err
	}
	var fd sandbox.FDs
	for _, end := range []struct {
		ours   **os.File
		number *int
		writes bool // whether bwrap's end is the writing one
	}{
		{&p.status, &fd.Status, true}, {&p.gate, &fd.Block, false},
		{&p.token, &fd.Token, false}, {&p.report, &fd.Report, true},
	} {
		var err error
		if *end.number, err = p.pipe(end.ours, end.writes); err != nil {
			return err
		}
	}
	var err error
	if fd.Seccomp, err = p.memory("filter", l.filter); err != nil {
		return err
	}
	if fd.Files, err = p.files(s); err != nil {
		return err
	}
	options := sandbox.Options(s, l.host, fd)
	for _, o := range options {
		// One NUL would end an option and begin another of somebody's choice.
		if strings.IndexByte(o, 0) >= 0 {
			return errdefs.New(errdefs.Invalid, "sandbox: %.80q holds a NUL", o)
		}
	}
	args, err := p.memory("args", []byte(strings.Join(options, "\x00")+"\x00"))
	if err != nil {
		return err
	}
	p.argv = append([]string{"bwrap", "--args", strconv.Itoa(args), "--"}, sandbox.Command(s, fd)...)
	return nil
}

// streams makes the standard streams: pipes or /dev/null. A terminal would come
// back inside as /dev/console.
func (p *launch) streams(stdin bool) error {
	if stdin {
		if _, err := p.pipe(&p.stdin, false); err != nil {
			return err
		}
	} else {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return errdefs.New(errdefs.KindOf(err), "sandbox: %w", err)
		}
		p.give(null)
	}
	if _, err := p.pipe(&p.stdout, true); err != nil {
		return err
	}
	_, err := p.pipe(&p.stderr, true)
	return err
}

// files are the small files of /etc.
func (p *launch) files(s sandbox.Spec) ([]sandbox.File, error) {
	var files []sandbox.File
	made := sandbox.Accounts(s)
	var names []string
	for name := range made {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		n, err := p.memory("file", []byte(made[name]))
		if err != nil {
			return nil, err
		}
		files = append(files, sandbox.File{FD: n, Path: name})
	}
	for _, name := range sandbox.Copied(s) {
		if f := openCopied(name); f != nil {
			files = append(files, sandbox.File{FD: p.give(f), Path: name})
		}
	}
	return files, nil
}

// give hands a file to bwrap and returns its number there.
func (p *launch) give(f *os.File) int {
	p.inside = append(p.inside, f)
	return len(p.inside) - 1
}

// pipe makes a pipe, gives one end to bwrap and keeps the other.
func (p *launch) pipe(ours **os.File, writes bool) (int, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, errdefs.New(errdefs.KindOf(err), "sandbox: pipe: %w", err)
	}
	if writes {
		*ours = r
		return p.give(w), nil
	}
	*ours = w
	return p.give(r), nil
}

// memory gives bwrap a file that holds data.
func (p *launch) memory(name string, data []byte) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return 0, errdefs.New(errdefs.KindOf(err), "sandbox: memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	n := p.give(f)
	if _, err := f.Write(data); err != nil {
		return 0, errdefs.New(errdefs.KindOf(err), "sandbox: memory file: %w", err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		return 0, errdefs.New(errdefs.KindOf(err), "sandbox: memory file: %w", err)
	}
	return n, nil
}

// handedOver closes bwrap's ends here, so that pipes end when it is gone.
func (p *launch) handedOver() {
	for _, f := range p.inside {
		f.Close()
	}
	p.inside = nil
}

// open lets the payload run.
func (p *launch) open() error {
	_, err1 := p.gate.Write([]byte{1})
	_, err2 := p.token.Write([]byte{sandbox.Token})
	return errors.Join(err1, err2)
}

// close closes everything. The gate opens by it: nothing may wait there any
// more.
func (p *launch) close() {
	p.handedOver()
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr, p.status, p.gate, p.token, p.report} {
		if f != nil {
			f.Close()
		}
	}
}
