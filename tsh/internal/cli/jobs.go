package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/toolshell/command"
	"cortexfs.org/tsh/internal/job"
	"golang.org/x/sys/unix"
)

// control carries out a builtin about jobs.
func (t *terminal) control(b command.Builtin, words []string) {
	c, err := b.Parse(words)
	switch {
	case err != nil:
		t.wrong(err)
		return
	case c.Name == "help":
		t.explain(append([]string{c.Name}, c.Words...))
		return
	case c.Name == "status":
		fmt.Fprintln(t.std.Out, t.exit)
		return
	}
	t.exit = 0
	switch c.Name {
	case "jobs":
		for _, j := range t.jobs.Jobs() {
			fmt.Fprint(t.std.Out, t.describe(&j))
		}
	case "kill":
		t.kill(c)
	default:
		t.resume(c)
	}
}

// failed reports what a builtin could not do.
func (t *terminal) failed(err error) {
	t.complain(err)
	t.exit = errdefs.KindOf(err).Exit()
}

// resume carries out fg and bg.
func (t *terminal) resume(c command.Command) {
	word := ""
	if len(c.Words) > 0 {
		word = c.Words[0]
	}
	j, err := t.jobs.Find(word)
	if err != nil {
		t.failed(errdefs.New(errdefs.KindOf(err), "%s: %w", c.Name, err))
		return
	}
	if c.Name == "bg" {
		t.jobs.Resume(j)
		fmt.Fprintf(t.std.Out, "[%d] %s\n", j.N, j.Name)
		return
	}
	// What is typed once the name is there is the job's, so it comes after the modes.
	t.editor.Lend(func(f *os.File) {
		err = t.jobs.Foreground(t.on(f), j, t.note, func() { fmt.Fprintln(f, j.Name) })
	})
	t.after(j, err)
}

func (t *terminal) kill(c command.Command) {
	sig, err := signalOf(c.Signal)
	if err != nil {
		t.wrong(err)
		return
	}
	for _, w := range c.Words {
		if !strings.HasPrefix(w, "%") {
			err = errdefs.New(errdefs.Invalid, "%.80q is no %%N", w)
		} else if j, found := t.jobs.Find(w); found != nil {
			err = found
		} else {
			t.jobs.Kill(j, sig)
			continue
		}
		t.failed(errdefs.New(errdefs.KindOf(err), "kill: %w", err))
	}
}

// signalOf is the signal of a name, with SIG in front or without, or a number.
func signalOf(word string) (syscall.Signal, error) {
	if word == "" {
		return unix.SIGTERM, nil
	}
	if n, err := strconv.ParseUint(word, 10, 8); err == nil && n > 0 && n <= 64 {
		return syscall.Signal(n), nil
	}
	name := strings.ToUpper(word)
	if sig := unix.SignalNum("SIG" + strings.TrimPrefix(name, "SIG")); sig != 0 {
		return sig, nil
	}
	return 0, errdefs.New(errdefs.Invalid, "kill: %.80q is no signal", word)
}

// note keeps what happened to a job for tell.
func (t *terminal) note(j *job.Job) {
	if j.State != job.Running {
		t.notices = append(t.notices, t.describe(j))
	}
}

// tell prints what happened to jobs; a line that is being written stays below.
func (t *terminal) tell() {
	for _, n := range t.notices {
		fmt.Fprint(t.std.Out, n)
	}
	t.notices = nil
}

// describe is a job as one line.
func (t *terminal) describe(j *job.Job) string {
	mark, state := " ", "running"
	if j.N == t.jobs.Current() && j.State != job.Ended {
		mark = "+"
	}
	switch {
	case j.State == job.Stopped && j.By == unix.SIGTTIN:
		state = "stopped, wants input"
	case j.State == job.Stopped:
		state = "stopped"
	case j.State == job.Ended && j.By != 0:
		state = "killed by " + unix.SignalName(j.By)
	case j.State == job.Ended && j.Code != 0:
		state = fmt.Sprintf("exit %d", j.Code)
	case j.State == job.Ended:
		state = "done"
	}
	return fmt.Sprintf("[%d]%s %-8s  %s\n", j.N, mark, state, j.Name)
}

// maxName bounds the name of a job, in bytes.
const maxName = 60

// nameOf is a command as jobs are listed: on one line, and not too long.
func nameOf(l command.Line) string {
	name := inert.Line(strings.Join(l.Words, " "))
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	if l.Background {
		name += " &"
	}
	return name
}
