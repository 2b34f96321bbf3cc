package sandboxrun

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// The descriptors of a launch, as bwrap inherits them behind the standard ones.
// The files of /etc follow, and the options themselves come last.
const (
	fdStatus = 3 + iota
	fdBlock
	fdChannel
	fdFilter
	fdFiles
)

// plan is what one launch is made from, looked up at one moment. It says in
// fixed all that the launch fixes: two plans that agree there make the same
// sandbox, and only then may one stand for the other.
type plan struct {
	spec    sandbox.Spec // complete
	request []byte       // for the entry step
	options []string     // of bwrap
	command []string     // what bwrap executes
	made    []string     // contents of the files from fdFiles on
	copied  []*os.File   // the files that follow them
	fixed   string
}

// plan checks a spec and looks at all it names; the payload gets so many
// descriptors besides its streams. The caller closes the plan.
func (l *Launcher) plan(s sandbox.Spec, passed int) (*plan, error) {
	s, others, err := l.complete(s)
	if err != nil {
		return nil, err
	}
	p := &plan{spec: s}
	request := weakRequest(sandbox.RequestOf(s))
	request.Passed = passed
	if p.request, err = request.Encode(); err != nil {
		return nil, err
	}
	fd := sandbox.FDs{Status: fdStatus, Block: fdBlock, Channel: fdChannel, Seccomp: fdFilter}
	accounts := sandbox.Accounts(s)
	var names []string
	for name := range accounts {
		names = append(names, name)
	}
	slices.Sort(names)
	give := func(path string) {
		fd.Files = append(fd.Files, sandbox.File{FD: fdFiles + len(fd.Files), Path: path})
	}
	for _, name := range names {
		give(name)
		p.made = append(p.made, accounts[name])
	}
	var facts []unix.Stat_t
	for _, name := range sandbox.Copied(s) {
		if f, st := openCopied(name); f != nil {
			give(name)
			p.copied, facts = append(p.copied, f), append(facts, st)
		}
	}
	p.options = weakOptions(sandbox.Options(s, l.host, fd))
	p.command = weakCommand(sandbox.Command(s, fd))
	for _, o := range p.options {
		// One NUL would end an option and begin another of somebody's choice.
		if strings.IndexByte(o, 0) >= 0 {
			p.close()
			return nil, errdefs.New(errdefs.Invalid, "sandbox: %.80q holds a NUL", o)
		}
	}
	p.fixed = p.describe(append(others, facts...))
	return p, nil
}

// describe writes fixed: all of the command line, whoever it is for, the
// contents of what is made, and the identity of everything that is shown.
func (p *plan) describe(shown []unix.Stat_t) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n%q\n%q\n%q\n%+v\n", p.spec.Identity, p.options, p.command, p.made, sandbox.RequestOf(p.spec).Expect)
	for _, st := range shown {
		fmt.Fprintln(&b, st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim)
	}
	return b.String()
}

// close closes what was opened.
func (p *plan) close() {
	for _, f := range p.copied {
		f.Close()
	}
	p.copied = nil
}
