package system

import (
	"fmt"
	"strings"
	"testing"
)

// TestUsers: everybody makes agents, and nobody reaches those of another.
func TestUsers(t *testing.T) {
	a, b := newPerson(t), newPerson(t)
	a.agent("hers")
	b.agent("his")
	a.answers("hers")
	b.answers("his")
	// Files of the agent are hers: she may change them, with and without ctx.
	must(t, a.ctx("agent", "set", "hers", "timeout", "5m"))
	if got := must(t, a.ctx("agent", "get", "hers", "timeout")); got != "5m\n" {
		t.Errorf("timeout %q", got)
	}
	if got := strings.TrimSpace(a.root("stat", "-c", "%U %a", "/ctx/agent/hers.d/timeout")); got != a.Name+" 644" {
		t.Error(got)
	}
	a.answers("hers")
	for what, r := range map[string][]string{
		"set":    {"agent", "set", "hers", "perm", "rwx"},
		"rm":     {"agent", "rm", "hers"},
		"enable": {"agent", "enable", "hers"},
		"send":   {"agent", "send", "hers", "hello"},
		"start":  {"agent", "start", "hers"},
	} {
		refused(t, what, b.ctx(r...), 13, fmt.Sprintf("uid %d", a.UID))
	}
	// Without ctx, which asks politely.
	for request, answer := range map[string][2]string{
		`{"op":"send","id":"x","input":"hello"}`:                                       {"/ctx/agent/hers.sock", "this socket is its owner's"},
		`{"op":"stop","agent":"hers"}`:                                                 {"/run/cortexfs/agent/hers.sock", "this socket is its owner's"},
		`{"op":"agent.rm","agent":"hers","purge":true}`:                                {"/run/cortexfs/admin.sock", "its files belong to uid"},
		`{"op":"agent.set","agent":"hers","control":"perm","content":"rwx"}`:           {"/run/cortexfs/admin.sock", "its files belong to uid"},
		fmt.Sprintf(`{"op":"agent.new","agent":"g","model":"main","owner":%d}`, a.UID): {"/run/cortexfs/admin.sock", "can not make an agent for uid"},
		`{"op":"generate"}`: {"/run/cortexfs/model.sock", "Permission denied"},
	} {
		if got := b.says(answer[0], request); !strings.Contains(got, answer[1]) {
			t.Errorf("%s: %s", request, got)
		}
	}
	refused(t, "an agent for another", b.ctx("agent", "new", "gift", "--model", "debug/echo", "--owner", a.Name), 13, "can not make an agent for uid")
	refused(t, "an agent of root's", b.ctx("agent", "new", "gift", "--model", "debug/echo", "--owner", "0"), 13, "can not make an agent for uid 0")
	refused(t, "a name that is taken", b.ctx("agent", "new", "hers", "--model", "debug/echo"), 1, "it is there already")
	refused(t, "a name for no unit", b.ctx("agent", "new", "a+b", "--model", "debug/echo"), 2, "can not stand in the name of a unit")
	for _, path := range []string{
		fmt.Sprintf("/ctx/home/%d", a.UID), fmt.Sprintf("/ctx/home/%d/agent/hers/session/default/messages.jsonl", a.UID),
		"/var/lib/cortexfs/tree", "/var/lib/cortexfs/secrets", "/ctx/.lock", "/run/cortexfs/lock",
	} {
		if r := b.Run("ls", path); r.Code == 0 {
			t.Errorf("%s is open to others: %s", path, r.Out)
		}
	}
	if r := b.Run("sh", "-c", "echo x >/ctx/agent/hers.d/perm || rm /ctx/agent/hers || touch /ctx/agent/new || rm /ctx/agent/hers.sock"); r.Code == 0 {
		t.Error("others write in the tree")
	}
	a.answers("hers")
}

// TestOfRoot: what root makes for a user is the user's to use, and root's to
// change.
func TestOfRoot(t *testing.T) {
	p := newPerson(t)
	p.root("ctx", "--quiet", "agent", "new", "given", "--owner", p.Name, "--model", "debug/tools", "--native", "fs.read")
	p.answers("given")
	refused(t, "set", p.ctx("agent", "set", "given", "perm", "rwx"), 13, "its files belong to uid 0")
	refused(t, "rm", p.ctx("agent", "rm", "given"), 13, "its files belong to uid 0")
	if got := strings.TrimSpace(p.root("stat", "-c", "%U", "/ctx/agent/given.d/perm")); got != "root" {
		t.Errorf("perm is %s's", got)
	}
	p.root("ctx", "--quiet", "agent", "set", "given", "timeout", "1m")
	home := fmt.Sprintf("/ctx/home/%d/agent/given", p.UID)
	if got := strings.TrimSpace(p.root("stat", "-c", "%U %a", home+"/session")); got != p.Name+" 700" {
		t.Errorf("sessions are %s", got)
	}
	p.root("ctx", "--quiet", "agent", "rm", "given")
	p.root("test", "-e", home+"/session/default/messages.jsonl") // sessions stay unless asked
	for _, path := range []string{"/ctx/agent/given", "/ctx/agent/given.d", "/ctx/agent/given.sock", "/run/cortexfs/agent/given.sock"} {
		p.root("sh", "-c", "! [ -e "+path+" ] && ! [ -L "+path+" ]")
	}
	if got := p.property("ActiveState", "ctxd@given.socket"); got != "inactive" {
		t.Errorf("the socket is %s", got)
	}
	p.root("sh", "-c", "! ls /etc/systemd/system/*/ctxd@given*")
}

// TestProgram: the program of an agent is read with the rights of its owner, and
// its work is done with them.
func TestProgram(t *testing.T) {
	a, b := newPerson(t), newPerson(t)
	a.sh("cp /usr/local/bin/linecount mine; chmod 700 mine")
	refused(t, "a program of another", b.ctx("agent", "new", "thief", "--exec", a.Home+"/work/mine"), 13, "permission denied")
	must(t, a.ctx("agent", "new", "lines", "--exec", "mine", "--tool", "fs.list", "--tool", "fs.read"))
	t.Cleanup(func() { a.root("ctx", "--quiet", "agent", "rm", "lines", "--purge") })
	if out := must(t, a.ctx("agent", "send", "lines", "How long is the README?")); !strings.Contains(out, "README.md has 1 line") {
		t.Error(out)
	}
	// Whose process it is, and what it finds of the keys and of others.
	a.agent("prober", "--perm", "rwx")
	a.root("sh", "-c", "umask 077; mkdir -p /var/lib/cortexfs/secrets/provider/p; echo secret-of-p >/var/lib/cortexfs/secrets/provider/p/default; chown -R cortexfs-model: /var/lib/cortexfs/secrets/provider")
	out := must(t, a.ctx("agent", "tsh", "prober", "--", "bash", "-c",
		"id -u; cat /var/lib/cortexfs/secrets/provider/p/default /run/cortexfs/model.sock; ls /run/cortexfs; touch made; ls -ln made | cut -d' ' -f3"))
	if uid := fmt.Sprintf("%d\n", a.UID); !strings.HasPrefix(out, uid) || !strings.Contains(out, "\n"+uid) || strings.Contains(out, "secret-of-p") {
		t.Error(out)
	}
	if r := a.Run("cat", "/var/lib/cortexfs/secrets/provider/p/default"); r.Code == 0 {
		t.Error("a user reads a key")
	}
}

// TestNearNames: agents whose names are nearly the same are different ones.
func TestNearNames(t *testing.T) {
	p := newPerson(t)
	names := []string{"n-a", "n_a", "n.a", "na", "N-a", "n--a"}
	for _, name := range names {
		p.agent(name)
		must(t, p.ctx("agent", "set", name, "env", "WHO="+name))
	}
	for _, name := range names {
		if out := must(t, p.ctx("agent", "tsh", name, "--", "bash", "-c", "echo $WHO $CTX_AGENT")); !strings.HasPrefix(out, name+" "+name+"\n") {
			t.Errorf("%s: %s", name, out)
		}
		if got := p.property("MainPID", "ctxd@"+name+".service"); got == "0" {
			t.Errorf("%s has no server", name)
		}
	}
}

// TestUserDeleted: with the account goes who an agent is. It is refused with a
// reason, root removes it, and another agent is not touched.
func TestUserDeleted(t *testing.T) {
	m := machineOf(t)
	m.Must(t, "useradd", "--create-home", "--uid", "5001", "--gid", "100", "leaver")
	m.Must(t, "runuser", "-u", "leaver", "--", "ctx", "--quiet", "agent", "new", "orphan", "--model", "debug/echo")
	m.Must(t, "runuser", "-u", "leaver", "--", "ctx", "--quiet", "agent", "send", "--workspace", "/home/leaver", "orphan", "hello")
	m.Must(t, "systemctl", "stop", "ctxd@orphan.service")
	m.Must(t, "userdel", "--remove", "leaver")
	out := m.Must(t, "sh", "-c", "ctx agent send --workspace /srv orphan hello 2>&1 || echo exit=$?; ctx doctor || true")
	if !strings.Contains(out, "agent/orphan.d/gid: says 100") || !strings.Contains(out, "exit=13") {
		t.Error(out)
	}
	m.Must(t, "ctx", "--quiet", "agent", "rm", "orphan", "--purge")
	m.Must(t, "sh", "-c", "! ls -d /ctx/agent/orphan* /ctx/home/5001/agent/orphan")
}
