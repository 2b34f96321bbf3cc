// Package job runs the programs of a shell: on a terminal each as a job, a process
// group of its own that can be stopped, continued and left in the background;
// elsewhere one after another. It decides nothing about what may run.
//
// Signals that the shell catches are at their defaults in what it starts, and it
// ignores none. The terminal is given to a group by the shell, once the group is
// there, and not by the program before it begins. What happens in the moment between
// is made up for: a program that wanted the terminal was stopped by the kernel and is
// continued, and signals of the keyboard reached the shell and are passed on.
package job

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// Program is what to run.
type Program struct {
	Path string   // of the file
	Argv []string // with its name in front
	Env  []string // complete
}

// State is what a job does.
type State int

// The states.
const (
	Running State = iota
	Stopped
	Ended
)

// Job is one command of a table.
type Job struct {
	N     int    // what it is called by, from 1
	Name  string // the command, for people
	State State
	Code  int            // once it has ended: exit code, 128 and the number of a signal
	By    syscall.Signal // the signal that stopped or ended it, 0 if none did

	pid   int
	modes *unix.Termios // of the terminal when it was stopped, nil if it never had it
	seen  chan struct{} // the table has collected what watch saw
}

// Table is the jobs of one shell. All of it but watch belongs to one goroutine.
type Table struct {
	list    []*Job
	order   []*Job // of those that are no longer in front, the last one is current
	changes chan *Job
	done    chan struct{}
}

// NewTable is a table without jobs. The caller closes it.
func NewTable() *Table {
	return &Table{changes: make(chan *Job), done: make(chan struct{})}
}

// Close ends the watching of jobs. Jobs go on.
func (t *Table) Close() { close(t.done) }

// Changes delivers a job whenever something happened to it; Collect says what.
func (t *Table) Changes() <-chan *Job { return t.changes }

// Jobs lists the jobs by number.
func (t *Table) Jobs() []Job {
	var all []Job
	for _, j := range t.list {
		all = append(all, *j)
	}
	return all
}

// Current is the number of the job that fg and bg mean without one: the last that
// was stopped, else the last that went to the background. 0 if there is none.
func (t *Table) Current() int {
	for i := len(t.order) - 1; i >= 0; i-- {
		if t.order[i].State == Stopped {
			return t.order[i].N
		}
	}
	if n := len(t.order); n > 0 {
		return t.order[n-1].N
	}
	return 0
}

// Find is the job that a word means, N or %N, "" the current one.
func (t *Table) Find(word string) (*Job, error) {
	n := t.Current()
	if word != "" {
		v, err := strconv.ParseUint(strings.TrimPrefix(word, "%"), 10, 16)
		if err != nil {
			return nil, errdefs.New(errdefs.Invalid, "%.80q is no number of a job", word)
		}
		n = int(v)
	}
	i := slices.IndexFunc(t.list, func(j *Job) bool { return j.N == n })
	switch {
	case i >= 0:
		return t.list[i], nil
	case word == "":
		return nil, errdefs.New(errdefs.NotFound, "there are no jobs")
	}
	return nil, errdefs.New(errdefs.NotFound, "%%%d: no such job", n).WithHint("jobs lists them")
}

// start runs a program as a job, without the terminal.
func (t *Table) start(p Program, name string, files [3]*os.File) (*Job, error) {
	if len(t.list) >= libctx.MaxJobs {
		return nil, errdefs.New(errdefs.Busy, "there are %d jobs already", len(t.list))
	}
	pid, err := spawn(p, files, &syscall.SysProcAttr{Setpgid: true})
	if err != nil {
		return nil, err
	}
	j := &Job{N: 1, Name: name, pid: pid, seen: make(chan struct{})}
	for _, other := range t.list {
		j.N = max(j.N, other.N+1)
	}
	t.list = append(t.list, j)
	go t.watch(j)
	return j, nil
}

// spawn starts a process and returns once it executes the program. Errors are
// errdefs.NotFound if the file or its interpreter is not there, and else
// errdefs.Denied.
func spawn(p Program, files [3]*os.File, sys *syscall.SysProcAttr) (int, error) {
	attr := &syscall.ProcAttr{Env: p.Env, Sys: sys}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	pid, err := syscall.ForkExec(p.Path, p.Argv, attr)
	return pid, failure(p, err)
}

// failure says why a program did not start.
func failure(p Program, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOENT):
		return errdefs.New(errdefs.NotFound, "%s: it or its interpreter is not there", p.Path)
	}
	return errdefs.New(errdefs.Denied, "%s: %w", p.Path, err)
}

// watch tells of everything that happens to a job until it has ended. It collects
// nothing, so that the number of a process stays what it is while the table knows
// it.
func (t *Table) watch(j *Job) {
	for {
		err := unix.Waitid(unix.P_PID, j.pid, nil, unix.WEXITED|unix.WSTOPPED|unix.WCONTINUED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return // it was collected
		}
		select {
		case t.changes <- j:
		case <-t.done:
			return
		}
		select {
		case _, more := <-j.seen:
			if !more {
				return
			}
		case <-t.done:
			return
		}
	}
}

// Collect notes what happened to a job that Changes delivered. A job that has
// ended is in the table no more.
func (t *Table) Collect(j *Job) {
	var ws unix.WaitStatus
	pid, err := unix.Wait4(j.pid, &ws, unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, nil)
	switch {
	case err == nil && pid == 0: // it happened and passed
	case err == nil && ws.Stopped():
		j.State, j.By = Stopped, ws.StopSignal()
	case err == nil && ws.Continued():
		j.State, j.By = Running, 0
	default:
		j.State, j.By, j.Code = Ended, 0, ws.ExitStatus()
		if ws.Signaled() {
			j.By, j.Code = ws.Signal(), 128+int(ws.Signal())
		}
		t.list = slices.DeleteFunc(t.list, func(k *Job) bool { return k == j })
		t.aside(j, false)
		close(j.seen)
		return
	}
	if j.State == Stopped {
		t.aside(j, true)
	}
	j.seen <- struct{}{}
}

// aside makes a job the last of those that are not in front, or none of them.
func (t *Table) aside(j *Job, is bool) {
	t.order = slices.DeleteFunc(t.order, func(k *Job) bool { return k == j })
	if is {
		t.order = append(t.order, j)
	}
}

// Background starts a program that never has the terminal's input: if it reads it,
// it is stopped.
func (t *Table) Background(p Program, name string, files [3]*os.File) (*Job, error) {
	j, err := t.start(p, name, files)
	if err != nil {
		return nil, err
	}
	t.aside(j, true)
	return j, nil
}

// Resume lets a stopped job go on in the background.
func (t *Table) Resume(j *Job) {
	j.State, j.By = Running, 0
	t.aside(j, true)
	j.signal(unix.SIGCONT)
}

// Kill sends a job a signal; one that is stopped goes on to hear those that end
// it.
func (t *Table) Kill(j *Job, sig syscall.Signal) {
	j.signal(sig)
	if j.State == Stopped && (sig == unix.SIGTERM || sig == unix.SIGHUP) {
		j.signal(unix.SIGCONT)
	}
}

// HangUp tells all jobs that the terminal is going away, in the order of their
// numbers.
func (t *Table) HangUp() {
	for _, j := range slices.SortedFunc(slices.Values(t.list), func(a, b *Job) int { return cmp.Compare(a.N, b.N) }) {
		j.signal(unix.SIGHUP)
		j.signal(unix.SIGCONT)
	}
}

// signal reaches the whole group. While the table knows a job its leader is not
// collected, so that the number is that of no other.
func (j *Job) signal(sig syscall.Signal) {
	if j.State != Ended {
		_ = unix.Kill(-j.pid, sig) // a group that is gone hears nothing
	}
}
