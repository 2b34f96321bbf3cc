package job

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Terminal is what a job in the foreground has.
type Terminal struct {
	File *os.File         // the terminal: its standard input
	Out  [2]*os.File      // standard output and error
	Ends <-chan os.Signal // the signals that end the shell, whatever the job does
	Keys <-chan os.Signal // those of the keyboard that reach the shell
}

// Ending is the error of waiting for a job while the shell is to end.
type Ending struct{ Signal os.Signal }

func (e Ending) Error() string { return "the shell is to end: " + e.Signal.String() }

// Take makes the shell a process group of its own in the foreground of its terminal,
// if it shares that of the program which started it; back undoes it. Without a group
// of its own it could not name the one to give the terminal back to: the group may
// be of another process namespace.
func Take(fd int) (back func()) {
	shared := unix.Getpgrp()
	if shared == unix.Getpid() {
		return func() {}
	}
	front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || front != shared || unix.Setpgid(0, 0) != nil {
		return func() {}
	}
	give(fd, unix.Getpid())
	return func() {
		if shared > 0 {
			give(fd, shared)
		}
	}
}

// Run starts a program in the foreground and waits until it has ended or was
// stopped; changes of other jobs that happen meanwhile go to other. Then the
// terminal is the shell's again, with the modes it had before. Errors are those of
// starting, and Ending.
func (t *Table) Run(on Terminal, p Program, name string, other func(*Job)) (*Job, error) {
	modes, _ := unix.IoctlGetTermios(int(on.File.Fd()), unix.TCGETS) // nil: there are none to come back to
	on.drop()
	j, err := t.start(p, name, [3]*os.File{on.File, on.Out[0], on.Out[1]})
	if err != nil {
		return nil, err
	}
	return j, t.front(on, j, modes, other)
}

// Foreground goes on with a job as Run does: with the modes of the terminal that
// it was stopped with. Given is called once they are set, before it
// has the terminal.
func (t *Table) Foreground(on Terminal, j *Job, other func(*Job), given func()) error {
	fd := int(on.File.Fd())
	modes, _ := unix.IoctlGetTermios(fd, unix.TCGETS)
	on.drop()
	if j.modes != nil {
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, j.modes)
	}
	j.State, j.By = Running, 0
	t.aside(j, false)
	given()
	give(fd, j.pid)
	j.signal(unix.SIGCONT)
	return t.front(on, j, modes, other)
}

// drop forgets the keys of before.
func (on Terminal) drop() {
	for {
		select {
		case <-on.Keys:
		default:
			return
		}
	}
}

// front waits for the job in the foreground. A key that was pressed before the job
// had the terminal was for it all the same.
func (t *Table) front(on Terminal, j *Job, modes *unix.Termios, other func(*Job)) error {
	fd := int(on.File.Fd())
	give(fd, j.pid)
	early := true           // it may have wanted the terminal before it had it
	var stop syscall.Signal // a key that stops it, from then: what continues it takes that back
	for {
		select {
		case k := <-t.changes:
			t.Collect(k)
			if k != j {
				other(k)
				continue
			}
		case s := <-on.Keys:
			if sig, ok := s.(syscall.Signal); ok {
				j.signal(sig)
				if sig == unix.SIGTSTP {
					stop = sig
				}
			}
			continue
		case s := <-on.Ends:
			return Ending{s}
		}
		if j.State == Stopped && early && (j.By == unix.SIGTTIN || j.By == unix.SIGTTOU) {
			early = false
			j.State, j.By = Running, 0
			t.aside(j, false)
			give(fd, j.pid)
			j.signal(unix.SIGCONT)
			if stop != 0 {
				j.signal(stop)
			}
			continue
		}
		if j.State != Running {
			break
		}
	}
	give(fd, unix.Getpgrp())
	if j.State == Stopped {
		j.modes, _ = unix.IoctlGetTermios(fd, unix.TCGETS)
	}
	if modes != nil {
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, modes) // of a terminal that is gone the next read tells
	}
	return nil
}

// give makes a group the foreground of the terminal. Who does that from the
// background gets SIGTTOU unless the thread blocks it; ignoring it instead would
// reach what is started.
func give(fd, group int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.Sigset_t
	block := unix.Sigset_t{}
	block.Val[0] |= 1 << (unix.SIGTTOU - 1)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &block, &before) != nil {
		return
	}
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, group) // of a terminal that is gone the next read tells
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
}

// Wait runs a program in the group of the shell, for who has no terminal, and
// returns its exit code. Signals of the keyboard are the program's: the caller
// catches them.
func Wait(p Program, files [3]*os.File) (int, error) {
	pid, err := spawn(p, files, nil)
	if err != nil {
		return 0, err
	}
	var ws unix.WaitStatus
	for err = unix.EINTR; err == unix.EINTR; {
		_, err = unix.Wait4(pid, &ws, 0, nil)
	}
	if ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return ws.ExitStatus(), nil
}

// Become executes a program in the place of this process. It returns only with an
// error, of the kinds that Run has.
func Become(p Program) error { return failure(p, syscall.Exec(p.Path, p.Argv, p.Env)) }
