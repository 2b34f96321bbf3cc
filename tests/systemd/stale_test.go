package systemd

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// metaFile is the file of a session's terminal that holds its receipt.
func (p *person) metaFile(session string) string {
	return p.Home + "/.local/share/cortexfs/home/" + strconv.Itoa(p.UID) + "/agent/coder/session/" + session +
		"/terminal/terminal-coder-" + session + "/meta.json"
}

// meta reads that file, and what its receipt says of the launch.
func (p *person) meta(session string) (meta, launch map[string]any) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(p.Must("cat", p.metaFile(session))), &meta); err != nil {
		p.t.Fatal(err)
	}
	return meta, meta["runtime_receipt"].(map[string]any)["terminal"].(map[string]any)
}

// write replaces that file.
func (p *person) write(session string, meta map[string]any) {
	p.t.Helper()
	cmd := p.Command("/bin/sh", "-euc", `cat >"$1.new"; chmod 600 "$1.new"; mv "$1.new" "$1"`, "sh", p.metaFile(session))
	cmd.Stdin = strings.NewReader(world.JSON(meta))
	if r := p.RunCommand(cmd); r.Code != 0 {
		p.t.Fatalf("%+v", r)
	}
}

// TestStale: what is not what a receipt says is left alone, and that is said.
func TestStale(t *testing.T) {
	p := newPerson(t, true)
	p.start("--session", "bystander")
	s := p.start()
	good, _ := p.meta("default")
	_, other := p.meta("bystander")
	facts := len(p.history("default"))
	of := func(keys ...string) func(map[string]any) {
		return func(l map[string]any) {
			for _, key := range keys {
				l[key] = other[key]
			}
		}
	}
	for _, c := range []struct {
		name string
		edit func(map[string]any)
		says string
	}{
		{"another invocation", func(l map[string]any) { l["invocation"] = strings.Repeat("0", 32) }, "stale: "},
		{"no invocation", func(l map[string]any) { l["invocation"] = "" }, "stale: "},
		{"another start of the process", func(l map[string]any) { l["start"] = l["start"].(float64) + 1 }, "stale: "},
		{"the first process", func(l map[string]any) { l["pid"], l["start"] = 1, 1 }, "failed: "},
		{"another boot", func(l map[string]any) { l["boot"] = "00000000-0000-0000-0000-000000000000" }, "gone: "},
		{"the invocation of another unit", of("invocation"), "stale: "},
		{"another unit", of("unit"), "stale: "},
		{"another unit's process", of("pid", "start"), "stale: "},
		{"another unit and its process", of("unit", "invocation", "pid", "start"), "stale: "},
		{"all of another session's", of("session", "unit", "invocation", "pid", "start", "socket"), "failed: "},
	} {
		meta, launch := p.meta("default")
		c.edit(launch)
		meta["runtime_receipt"].(map[string]any)["terminal"] = launch
		p.write("default", meta)
		r := p.ctx("agent", "stop", "--session", "default", "coder")
		if r.Code == 0 || !strings.Contains(r.Err, "terminal coder/default: "+c.says) || strings.Contains(r.Err, ": stopped") {
			t.Errorf("%s: %+v", c.name, r)
		}
		p.lives("bystander", "default")
		if state, pid := p.state("default"); state != "running" || pid != s.PID {
			t.Errorf("%s: %s, as process %d", c.name, state, pid)
		}
		p.write("default", good)
	}
	if n := len(p.history("default")); n != facts {
		t.Errorf("%d facts, before %d", n, facts)
	}
	if r := p.ctx("agent", "stop", "coder"); r.Code != 0 || strings.Count(r.Err, ": stopped") != 2 {
		t.Errorf("%+v", r)
	}
	p.lives()
	p.settled("default", "exited")
}

// TestForeignUnit: somebody ends the unit by hand and puts something of his own
// under its name.
func TestForeignUnit(t *testing.T) {
	p := newPerson(t, true)
	for _, how := range []string{"stop", "kill -s KILL"} {
		p.start()
		p.sh("systemctl --user " + how + " '" + coder + "'")
		p.sh("systemctl --user stop '" + coder + "' || :") // waits until it is gone
		p.sh("systemd-run --user --quiet --collect --unit '" + coder + "' sleep infinity")
		invocation := property(p.User, "InvocationID", coder)
		r := p.ctx("agent", "stop", "coder")
		if r.Code != 1 || strings.Contains(r.Err, ": stopped") || !strings.Contains(r.Err, "terminal coder/default: runs on as process ") {
			t.Errorf("%s: %+v", how, r)
		}
		if now := property(p.User, "InvocationID", coder); now != invocation {
			t.Errorf("%s: the unit was touched", how)
		}
		r = p.ctx("agent", "start", "coder")
		if r.Code != 1 || !strings.Contains(r.Err, "runs already") {
			t.Errorf("%s: start: %+v", how, r)
		}
		p.sh("systemctl --user stop '" + coder + "'")
		p.start()
		if r := p.ctx("agent", "stop", "coder"); r.Code != 0 || !strings.Contains(r.Err, "coder/default: stopped") {
			t.Errorf("%s: %+v", how, r)
		}
		p.settled("default", "exited")
	}
}
