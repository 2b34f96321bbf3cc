package machine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"cortexfs.org/tests/internal/screen"
	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// firstUser is the uid of a machine's first user. The host has nobody of these.
const firstUser = 4001

// User is an ordinary user of a machine, of one test.
type User struct {
	Name    string
	UID     int
	Home    string
	Runtime string // XDG_RUNTIME_DIR; there while the user has a manager

	t testing.TB
	m *Machine
}

// NewUser makes a user, who has a manager from now on if he lingers, and else
// while he is logged in. At the end of the test all his processes must end when
// asked to.
func (m *Machine) NewUser(t testing.TB, linger bool) *User {
	t.Helper()
	uid := firstUser - 1 + int(m.users.Add(1))
	name := "u" + strconv.Itoa(uid)
	u := &User{Name: name, UID: uid, Home: "/home/" + name, Runtime: "/run/user/" + strconv.Itoa(uid), t: t, m: m}
	m.Must(t, "useradd", "--create-home", "--shell", "/bin/bash", "--uid", strconv.Itoa(uid), name)
	t.Cleanup(u.end)
	if linger {
		m.Must(t, "loginctl", "enable-linger", name)
		m.Must(t, "systemctl", "start", u.Manager())
	}
	return u
}

// Manager is the unit of the user's manager.
func (u *User) Manager() string { return fmt.Sprintf("user@%d.service", u.UID) }

func (u *User) end() {
	u.m.Must(u.t, "loginctl", "disable-linger", u.Name)
	u.m.Must(u.t, "systemctl", "stop", u.Manager(), fmt.Sprintf("user-%d.slice", u.UID))
	for _, p := range u.all() {
		unix.Kill(p.pid, unix.SIGTERM)
	}
	deadline := time.Now().Add(20 * time.Second)
	for left := u.all(); len(left) > 0; left = u.all() {
		if time.Now().After(deadline) {
			for _, p := range left {
				u.t.Errorf("%s, process %d of %s, survives the test", p.name, p.pid, u.Name)
				unix.Kill(p.pid, unix.SIGKILL)
			}
			return
		}
		waitExit(left[0].pid, deadline)
	}
}

// all are the user's processes.
func (u *User) all() []process {
	var all []process
	for _, p := range processes() {
		if p.uid == u.UID {
			all = append(all, p)
		}
	}
	return all
}

// Processes are the user's processes with that program's name, by the host's
// numbers.
func (u *User) Processes(name string) []int {
	var pids []int
	for _, p := range u.all() {
		if p.name == name {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// InUnit reports whether a process, by the host's number, is in a unit whose name
// begins so.
func (u *User) InUnit(pid int, prefix string) bool {
	u.t.Helper()
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		u.t.Fatal(err)
	}
	return strings.Contains(string(groups), "/"+prefix)
}

// Kill kills a process, unless it is gone already, by the host's number and waits
// until it is gone.
func (u *User) Kill(pid int) {
	u.t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err != nil {
		u.t.Fatalf("process %d: %v", pid, err)
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		u.t.Fatalf("kill %d: %v", pid, err)
	}
	waitExit(pid, time.Now().Add(patience))
}

// Gone waits until the process is gone that the machine calls pid.
func (u *User) Gone(pid int) {
	u.t.Helper()
	deadline := time.Now().Add(patience)
	for _, p := range u.all() {
		if len(p.numbers) > 2 && p.numbers[2] == strconv.Itoa(pid) { // below nspawn's and the machine's
			if waitExit(p.pid, deadline); time.Now().After(deadline) {
				u.t.Fatalf("%s, process %d, does not end", p.name, pid)
			}
		}
	}
}

// Ended waits until the user has no process of that name.
func (u *User) Ended(name string) {
	u.t.Helper()
	deadline := time.Now().Add(patience)
	for pids := u.Processes(name); len(pids) > 0; pids = u.Processes(name) {
		if time.Now().After(deadline) {
			u.t.Fatalf("%s, process %d, does not end", name, pids[0])
		}
		waitExit(pids[0], deadline)
	}
}

// waitExit waits until a process ends.
func waitExit(pid int, deadline time.Time) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(0, time.Until(deadline)).Milliseconds()))
}

// enter prepares a command of the machine's root, outside of any unit and any
// session, on the standard streams it is given.
func (m *Machine) enter(args ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{"--target", strconv.Itoa(m.leader), "--all", "--"}, args...)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	cmd.WaitDelay = patience
	return cmd
}

// Must runs a command as the machine's root, fails the test unless it exits 0,
// and returns its output.
func (m *Machine) Must(t testing.TB, args ...string) string {
	t.Helper()
	return must(t, args, run(t, m.enter(args...)))
}

// Command prepares a command of the user in his home, outside of his sessions,
// as a job of cron would be.
func (u *User) Command(args ...string) *exec.Cmd {
	return u.m.enter(append([]string{
		"setpriv", "--reuid", u.Name, "--regid", u.Name, "--init-groups", "--reset-env",
		"env", "-C", u.Home, "LANG=C.UTF-8", "XDG_RUNTIME_DIR=" + u.Runtime,
	}, args...)...)
}

// Run runs a command of the user to its end.
func (u *User) Run(args ...string) world.Result {
	u.t.Helper()
	return run(u.t, u.Command(args...))
}

// RunCommand runs a prepared command to its end.
func (u *User) RunCommand(cmd *exec.Cmd) world.Result {
	u.t.Helper()
	return run(u.t, cmd)
}

// Must runs a command of the user, fails the test unless it exits 0, and returns
// its output.
func (u *User) Must(args ...string) string {
	u.t.Helper()
	return must(u.t, args, u.Run(args...))
}

// Login opens a session of the user on a terminal, with a shell, as on a console
// or by ssh. The end of the terminal or of the test ends it.
func (u *User) Login(columns, rows int) *screen.Screen {
	u.t.Helper()
	s := screen.Start(u.t, u.m.enter("systemd-run", "--quiet", "--collect", "--pty",
		"--property=PAMName=login", "--property=User="+u.Name, "--property=WorkingDirectory="+u.Home,
		"--setenv=TERM=xterm-256color", "--setenv=PS1=$ ", "--setenv=SYSTEMD_PAGER=cat", "/bin/bash", "--norc"), columns, rows)
	s.Last("$") // what is typed before may be lost
	return s
}

func run(t testing.TB, cmd *exec.Cmd) world.Result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return world.Result{Out: out.String(), Err: errs.String(), Code: cmd.ProcessState.ExitCode()}
}

func must(t testing.TB, args []string, r world.Result) string {
	t.Helper()
	if r.Code != 0 {
		t.Fatalf("%s: exit %d\n%s%s", strings.Join(args, " "), r.Code, r.Out, r.Err)
	}
	return r.Out
}
