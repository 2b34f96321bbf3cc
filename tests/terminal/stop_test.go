package terminal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// TestDoctored: a receipt that says something else than what is the case stops
// nothing.
func TestDoctored(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	other := l.start(t, "other")
	r := l.start(t, "default")
	file := func(session string) string {
		return filepath.Join(l.Session("coder", session), "terminal/terminal-coder-"+session, "meta.json")
	}
	launch := func(meta map[string]any) map[string]any {
		return meta["runtime_receipt"].(map[string]any)["terminal"].(map[string]any)
	}
	read := func(session string) (meta map[string]any) {
		must(t, json.Unmarshal([]byte(l.Read(file(session))), &meta))
		return meta
	}
	good, foreign := l.Read(file("default")), launch(read("other"))
	s := r.join(80, 24)
	for name, c := range map[string]struct {
		says string
		edit func(map[string]any)
	}{
		"another pid":           {"stale: ", func(l map[string]any) { l["pid"] = foreign["pid"] }},
		"another process":       {"stale: ", func(l map[string]any) { l["pid"], l["start"] = foreign["pid"], foreign["start"] }},
		"a process of the test": {"stale: ", func(l map[string]any) { l["pid"] = os.Getpid() }},
		"another start":         {"stale: ", func(l map[string]any) { l["start"] = l["start"].(float64) + 1 }},
		"another invocation":    {"stale: ", func(l map[string]any) { l["invocation"] = strings.Repeat("0", 32) }},
		"another's invocation":  {"stale: ", func(l map[string]any) { l["invocation"] = foreign["invocation"] }},
		"another unit":          {"stale: ", func(l map[string]any) { l["unit"] = foreign["unit"] }},
		"another boot":          {"gone: ", func(l map[string]any) { l["boot"] = "00000000-0000-0000-0000-000000000000" }},
		"all of another terminal": {"", func(l map[string]any) {
			for k, v := range foreign {
				l[k] = v
			}
		}},
		"a member more": {"", func(l map[string]any) { l["x"] = 1 }},
		"a member less": {"", func(l map[string]any) { delete(l, "start") }},
	} {
		meta := read("default")
		c.edit(launch(meta))
		must(t, os.WriteFile(file("default"), []byte(world.JSON(meta)), 0o600))
		got := l.Ctx("agent", "stop", "--session", "default", "coder")
		if got.Code == 0 || !strings.Contains(got.Err, "coder/default: "+c.says) || strings.Contains(got.Err, ": stopped") {
			t.Errorf("%s: %+v", name, got)
		}
		for _, x := range []*room{r, other} {
			if state, pid := x.state(); state != "running" || pid != x.pid {
				t.Errorf("%s: %s is %s, process %d", name, x.session, state, pid)
			}
		}
		must(t, os.WriteFile(file("default"), []byte(good), 0o600))
	}
	s.Type("status" + enter)
	s.See("status\n0\n" + prompt)
	got := l.Ctx("agent", "stop", "coder")
	if got.Code != 0 || strings.Count(got.Err, ": stopped") != 2 {
		t.Errorf("%+v", got)
	}
	if code := s.Exit(); code != 129 {
		t.Errorf("exit code %d", code)
	}
	clean(t, s)
	r.over("exited")
	other.over("exited")
}
