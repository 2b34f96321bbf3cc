package life

import (
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/machine"
)

// life is a machine with two people, each with an agent.
type life struct {
	*testing.T
	m      *machine.Machine
	people []*machine.User
	said   int // how often each agent was spoken to
}

// root runs a script as root and returns what it prints.
func (l *life) root(script string) string {
	l.Helper()
	return l.m.Must(l, "/bin/sh", "-euc", script)
}

// apt runs apt-get, whose words must not complain.
func (l *life) apt(command string) {
	l.Helper()
	out := l.root(command)
	for _, word := range []string{"warning:", "rror:", "Failed", "not found", "conffile"} {
		if strings.Contains(out, word) {
			l.Errorf("%s:\n%s", command, out)
			return
		}
	}
}

func agent(u *machine.User) string { return "of-" + u.Name }

// answers speaks to each agent, wants the answer, and the history of all that was
// said.
func (l *life) answers(when string) {
	l.Helper()
	l.said++
	for _, u := range l.people {
		word := fmt.Sprintf("word-%d", l.said)
		if r := u.Run("ctx", "--quiet", "agent", "send", agent(u), word); r.Code != 0 || !strings.Contains(r.Out, word) {
			l.Fatalf("%s: %s: exit %d\n%s%s", when, agent(u), r.Code, r.Out, r.Err)
		}
		history := u.Must("ctx", "agent", "history", agent(u))
		for n := range l.said {
			if !strings.Contains(history, fmt.Sprintf("word-%d", n+1)) {
				l.Errorf("%s: %s has forgotten word-%d:\n%s", when, agent(u), n+1, history)
			}
		}
	}
}

// running wants the machine's sockets to listen, and nothing to have failed.
func (l *life) running(when string) {
	l.Helper()
	out := l.root("systemctl is-active cortexfs.target ctx.mount ctxd-admin.socket ctxmodel.socket || :; systemctl --failed --plain --no-legend")
	if out != "active\nactive\nactive\nactive\n" {
		l.Fatalf("%s: %s", when, out)
	}
}

// TestLife: the life of packages.
func TestLife(t *testing.T) {
	m := boot(t)
	l := &life{T: t, m: m}

	// They were installed where nothing ran: everything is there after the boot.
	l.running("after the first boot")
	if out := l.root("dpkg --verify $(dpkg-query -W -f '${Package} ' 'cortexfs*'); systemctl is-system-running"); out != "running\n" {
		t.Errorf("after the first boot: %s", out)
	}
	for range 2 {
		u := m.NewUser(t, false)
		u.Must("ctx", "--quiet", "agent", "new", agent(u), "--model", "debug/echo")
		l.people = append(l.people, u)
	}
	l.answers("at first")
	one, two := l.people[0], l.people[1]
	if r := one.Run("ctx", "agent", "send", agent(two), "hello"); r.Code != 13 {
		t.Errorf("%s speaks to %s: exit %d\n%s%s", one.Name, agent(two), r.Code, r.Out, r.Err)
	}
	if r := one.Run("ctx", "agent", "history", agent(two)); r.Code == 0 || strings.Contains(r.Out, "word") {
		t.Errorf("%s reads what %s said: exit %d\n%s%s", one.Name, two.Name, r.Code, r.Out, r.Err)
	}
	l.root("MANPATH=/usr/share/man; test -s /usr/share/man/man1/ctx.1.gz; grep -q complete /usr/share/bash-completion/completions/ctx")

	// Once more.
	l.apt(install(older))
	l.running("installed again")
	l.answers("installed again")

	// What an administrator wants stays, and servers are new.
	l.root("systemctl --quiet disable --now ctxmodel.socket; echo '{}' >/etc/cortexfs/kept.json; mkdir -p /etc/systemd/system/ctxd@.service.d; printf '[Service]\nTasksMax=300\n' >/etc/systemd/system/ctxd@.service.d/limits.conf")
	before := l.root("systemctl show --value -p MainPID ctxd@" + agent(one) + ".service")
	l.apt(install(newer))
	if after := l.root("systemctl show --value -p MainPID ctxd@" + agent(one) + ".service"); after == before && before != "0\n" {
		t.Errorf("the server of the old version goes on: process %s", after)
	}
	if out := l.root("systemctl is-enabled ctxmodel.socket || :; systemctl is-active ctxmodel.socket || :; systemctl show --value -p TasksMax ctxd@x.service; cat /etc/cortexfs/kept.json"); out != "disabled\ninactive\n300\n{}\n" {
		t.Errorf("the upgrade has changed what was set: %s", out)
	}
	if out := l.root("dpkg-query -W -f '${Version} ' 'cortexfs*'"); out != strings.Repeat(newer+"-1 ", 5) {
		t.Errorf("versions: %s", out)
	}
	l.root("systemctl --quiet enable --now ctxmodel.socket; rm -r /etc/systemd/system/ctxd@.service.d; systemctl daemon-reload")
	l.answers("upgraded")

	// Removed: nothing runs, what people have stays.
	l.apt("apt-get remove --yes 'cortexfs*' </dev/null 2>&1")
	l.nothingRuns("removed")
	l.root("test -s /etc/cortexfs/kept.json; test -n \"$(find /var/lib/cortexfs/tree/home -name messages.jsonl)\"")
	l.apt(install(newer))
	l.running("installed after a removal")
	l.answers("installed after a removal")

	// Purged: no file of the packages, what people have stays.
	files := l.root("dpkg -L $(dpkg-query -W -f '${Package} ' 'cortexfs*') | sort -u")
	l.purge(files)
	if out := l.root("ls /var/lib/cortexfs /var/lib/cortexfs/tree"); out != "/var/lib/cortexfs:\ntree\n\n/var/lib/cortexfs/tree:\nagent\nhome\n" {
		t.Errorf("purged, there is: %s", out)
	}
	l.apt(install(newer))
	l.running("installed after a purge")
	for _, u := range l.people {
		l.root("systemctl enable --now ctxd@" + agent(u) + ".socket 2>/dev/null")
	}
	l.answers("installed after a purge")

	// Everything goes if somebody wants it.
	l.root("touch /var/lib/cortexfs/purge")
	l.purge(files)
	if out := l.root("find / -xdev -name '*cortexfs*' -not -path '/packages/*' -not -path '/var/log/*' -not -path '/proc/*'"); out != "" {
		t.Errorf("purged with everything, there is: %s", out)
	}
}

func (l *life) nothingRuns(when string) {
	l.Helper()
	out := l.root("systemctl list-units --plain --no-legend 'ctx*' 'cortexfs*'; ps -eo comm= | grep -x 'ctx.*' || :; findmnt /ctx || :; systemctl --failed --plain --no-legend; find /run/cortexfs -type s 2>/dev/null || :")
	if out != "" {
		l.Errorf("%s: %s", when, out)
	}
}

// purge purges all packages, and wants none of those files, their settings or
// their user's directories to be left.
func (l *life) purge(files string) {
	l.Helper()
	l.apt("apt-get purge --yes 'cortexfs*' </dev/null 2>&1")
	l.nothingRuns("purged")
	for _, path := range strings.Fields(files) {
		if strings.Contains(path, "ctx") || strings.Contains(path, "cortexfs") || strings.Contains(path, "tsh") {
			if out := l.root("ls -d '" + path + "' 2>/dev/null || :"); out != "" {
				l.Errorf("purged, and there is %s", path)
			}
		}
	}
	if out := l.root("ls -d /ctx /etc/cortexfs /run/cortexfs /var/lib/cortexfs/secrets 2>/dev/null || :; find /etc/systemd /var/lib/systemd -name '*ctx*' -o -name '*cortexfs*'; dpkg-query -W 'cortexfs*' 2>/dev/null || :"); out != "" {
		l.Errorf("purged, there is: %s", out)
	}
}
