package systemd

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/libctx/supervise"
	"cortexfs.org/tests/internal/machine"
	"cortexfs.org/tests/internal/world"
)

// unit is the name of the unit of a session of the agent "a".
func unit(session string) string { return "cortexfs-terminal:a:" + session + ".service" }

// instance reads one that the supervisor printed.
func instance(t *testing.T, text string) (i supervise.Instance) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return i
}

// begin starts a unit whose program does nothing.
func begin(t *testing.T, u *machine.User, supervisor, session string) supervise.Instance {
	t.Helper()
	return instance(t, u.Must("supervisor", "start", supervisor, session, "/bin/sleep", "infinity"))
}

// with runs an operation of the supervisor on an instance.
func with(u *machine.User, op string, i supervise.Instance) world.Result {
	cmd := u.Command("supervisor", op, i.Supervisor)
	cmd.Stdin = strings.NewReader(world.JSON(i))
	return u.RunCommand(cmd)
}

func wants(t *testing.T, what string, r world.Result, prefix string) {
	t.Helper()
	if !strings.HasPrefix(r.Out, prefix) || (r.Code == 0) != (prefix == "") {
		t.Errorf("%s: exit %d, %q %q, not %q", what, r.Code, r.Out, r.Err, prefix)
	}
}

func property(u *machine.User, name, unit string) string {
	return strings.TrimSpace(u.Must("systemctl", "--user", "show", "--value", "--property", name, unit))
}

// TestSuperviseUnit: a unit's life.
func TestSuperviseUnit(t *testing.T) {
	u := boot(t).NewUser(t, true)
	for _, supervisor := range []string{"systemd", "auto"} {
		i := begin(t, u, supervisor, "s")
		if i.Supervisor != "systemd" || i.Unit != unit("s") || int(i.UID) != u.UID ||
			i.Invocation != property(u, "InvocationID", i.Unit) || strconv.Itoa(i.PID) != property(u, "MainPID", i.Unit) {
			t.Errorf("%+v", i)
		}
		if found := instance(t, u.Must("supervisor", "find", "systemd", "s")); found != i {
			t.Errorf("started %+v, found %+v", i, found)
		}
		other := begin(t, u, supervisor, "x.y-z")
		if n := strings.Count(u.Must("supervisor", "list", "systemd"), "\n"); n != 2 {
			t.Errorf("%d are listed", n)
		}
		wants(t, "proof", with(u, "prove", i), "")
		wants(t, "starting it again", u.Run("supervisor", "start", "systemd", "s", "/bin/sleep", "1"), "EEXIST: ")
		wants(t, "stop", with(u, "stop", i), "")
		wants(t, "proof after it", with(u, "prove", i), "ENOENT: ")
		wants(t, "stop after it", with(u, "stop", i), "ENOENT: ")
		wants(t, "find after it", u.Run("supervisor", "find", "systemd", "s"), "ENOENT: ")
		if state := property(u, "LoadState", i.Unit); state != "not-found" {
			t.Errorf("after its stop the unit is %s", state)
		}
		wants(t, "proof of the other", with(u, "prove", other), "")
		wants(t, "stop of the other", with(u, "stop", other), "")
	}
}

// TestSuperviseProgram: the program gets its words and its environment, and
// nothing of the manager's.
func TestSuperviseProgram(t *testing.T) {
	u := boot(t).NewUser(t, true)
	u.Must("systemctl", "--user", "set-environment", "LEAK=1", "MARK=no", "HOME=/nowhere")
	u.Must("mkfifo", "ready")
	words := []string{"$HOME", "${HOME}", "%h %%", "", "a b", `\x41`, `"`, ";", "-", "@", "é"}
	i := instance(t, u.Must(append([]string{"supervisor", "start", "systemd", "s", "/bin/sh", "-c",
		`cd "$HOME"; { pwd; printf '<%s>\n' "$@"; tr '\0' '\n' </proc/$$/environ | sort; } >ready; exec sleep infinity`, "sh"}, words...)...))
	want := u.Home + "\n<" + strings.Join(words, ">\n<") + ">\nHOME=" + u.Home + "\nMARK=a b\n"
	if got := u.Must("cat", "ready"); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
	wants(t, "stop", with(u, "stop", i), "")
}

// TestSuperviseStale: what a receipt does not fit is left alone.
func TestSuperviseStale(t *testing.T) {
	u := boot(t).NewUser(t, true)
	old := begin(t, u, "systemd", "s")
	u.Must("systemctl", "--user", "stop", old.Unit)
	i := begin(t, u, "systemd", "s")
	other := begin(t, u, "systemd", "other")
	if i.Unit != old.Unit || i.Invocation == old.Invocation {
		t.Fatalf("%+v, then %+v", old, i)
	}
	edited := func(edit func(*supervise.Instance)) supervise.Instance {
		e := i
		edit(&e)
		return e
	}
	for _, c := range []struct {
		name string
		is   supervise.Instance
		says string
	}{
		{"of the start before", old, "ENOENT: "},
		{"with the invocation of the start before", edited(func(e *supervise.Instance) { e.Invocation = old.Invocation }), "stale EINVAL: "},
		{"with no invocation", edited(func(e *supervise.Instance) { e.Invocation = "" }), "stale EINVAL: "},
		{"with another start time", edited(func(e *supervise.Instance) { e.Start++ }), "stale EINVAL: "},
		{"with the pid of another unit", edited(func(e *supervise.Instance) { e.PID, e.Start = other.PID, other.Start }), "stale EINVAL: "},
		{"with the name of another unit", edited(func(e *supervise.Instance) { e.Unit = other.Unit }), "stale EINVAL: "},
		{"with the pid of init", edited(func(e *supervise.Instance) { e.PID = 1 }), "stale EINVAL: "},
		{"of another boot", edited(func(e *supervise.Instance) { e.Boot = "00000000-0000-0000-0000-000000000000" }), "ENOENT: "},
		{"of another user", edited(func(e *supervise.Instance) { e.UID++ }), "stale EINVAL: "},
		{"of another supervisor", edited(func(e *supervise.Instance) { e.Supervisor = "upstart" }), "EINVAL: "},
	} {
		wants(t, "proof of a receipt "+c.name, with(u, "prove", c.is), c.says)
		if c.is.Supervisor == "systemd" {
			wants(t, "stop by a receipt "+c.name, with(u, "stop", c.is), c.says)
		}
	}
	wants(t, "proof", with(u, "prove", i), "")
	wants(t, "proof of the other", with(u, "prove", other), "")
	u.Must("systemctl", "--user", "stop", other.Unit)
	wants(t, "stop", with(u, "stop", i), "")
}

// TestSuperviseWithoutManager: a user without one gets processes that stand on
// their own.
func TestSuperviseWithoutManager(t *testing.T) {
	u := boot(t).NewUser(t, false)
	if out := u.Must("supervisor", "linger"); out != "false\n" {
		t.Errorf("lingers: %q", out)
	}
	wants(t, "systemd", u.Run("supervisor", "start", "systemd", "s", "/bin/sleep", "1"), "ECONNREFUSED: ")
	i := begin(t, u, "auto", "s")
	if i.Supervisor != "direct" {
		t.Errorf("%+v", i)
	}
	wants(t, "proof", with(u, "prove", i), "")
	wants(t, "stop", with(u, "stop", i), "")
	wants(t, "proof after it", with(u, "prove", i), "ENOENT: ")
}

var loggedIn = regexp.MustCompile(`session=(\w+)\.`)

// TestSuperviseLogout: whoever lingers may log out. Without that the manager ends
// with the last session, and all its units. What is no unit lives as long as its
// session is not killed.
func TestSuperviseLogout(t *testing.T) {
	m := boot(t)
	for _, c := range []struct {
		name, supervisor string
		linger, killed   bool
		then             string
	}{
		{"who lingers logs out", "systemd", true, false, ""},
		{"who lingers is logged out", "systemd", true, true, ""},
		{"who does not linger logs out", "systemd", false, false, "ENOENT: "},
		{"who does not linger is logged out", "systemd", false, true, "ENOENT: "},
		{"who lingers logs out", "direct", true, false, ""},
		{"who lingers is logged out", "direct", true, true, "ENOENT: "},
		{"who does not linger logs out", "direct", false, false, ""},
		{"who does not linger is logged out", "direct", false, true, "ENOENT: "},
	} {
		u := m.NewUser(t, c.linger)
		s := u.Login(160, 24)
		s.Type("echo session=$XDG_SESSION_ID.\n")
		s.Await("the session", loggedIn.MatchString)
		id := loggedIn.FindStringSubmatch(s.Text())[1]
		if out := u.Must("supervisor", "linger"); out != strconv.FormatBool(c.linger)+"\n" {
			t.Errorf("%s: linger is %q", c.name, out)
		}
		s.Type("supervisor start " + c.supervisor + " s /bin/sleep infinity >instance; echo started=$?\n")
		s.See("started=0")
		i := instance(t, u.Must("cat", "instance"))
		if c.killed {
			m.Must(t, "loginctl", "terminate-session", id)
		} else {
			s.Type("exit\n")
		}
		s.Exit()
		if c.then != "" {
			u.Gone(i.PID)
		}
		wants(t, c.supervisor+": "+c.name, with(u, "prove", i), c.then)
	}
}

// TestSuperviseManagerKilled: with the manager its units end; a new one takes new
// ones.
func TestSuperviseManagerKilled(t *testing.T) {
	m := boot(t)
	u := m.NewUser(t, true)
	i := begin(t, u, "systemd", "s")
	for _, pid := range u.Processes("systemd") {
		u.Kill(pid)
	}
	u.Gone(i.PID)
	wants(t, "proof", with(u, "prove", i), "ENOENT: ")
	wants(t, "stop", with(u, "stop", i), "ECONNREFUSED: ") // there is nobody to ask
	m.Must(t, "systemctl", "start", u.Manager())
	again := begin(t, u, "systemd", "s")
	wants(t, "stop of the old one", with(u, "stop", i), "ENOENT: ")
	wants(t, "stop of the new one", with(u, "stop", again), "")
}
