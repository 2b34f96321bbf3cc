package procid

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"pgregory.net/rapid"
)

// table is what is in /proc at one moment.
type table map[int]stat

func (t table) read(pid int) (stat, error) {
	st, ok := t[pid]
	if !ok {
		return stat{}, gone(pid, os.ErrNotExist)
	}
	return st, nil
}

func is(id ID) func(ID) bool { return func(other ID) bool { return other == id } }

func TestDescends(t *testing.T) {
	const root = 10
	tree := table{1: {'S', 0, 1}, root: {'S', 1, 50}, 11: {'S', root, 60}, 12: {'R', 11, 60}, 20: {'S', 1, 55}}
	with := func(pid int, st stat) table {
		c := table{pid: st}
		for p, s := range tree {
			if p != pid {
				c[p] = s
			}
		}
		return c
	}
	for name, c := range map[string]struct {
		table table
		pid   int
		depth int
		ok    bool
	}{
		"itself":                   {tree, root, 5, true},
		"a child":                  {tree, 11, 5, true},
		"a grandchild":             {tree, 12, 5, true},
		"a sibling":                {tree, 20, 5, false},
		"the parent":               {tree, 1, 5, false},
		"nobody":                   {tree, 99, 5, false},
		"as deep as may be":        {tree, 12, 2, true},
		"deeper than may be":       {tree, 12, 1, false},
		"only itself":              {tree, root, 0, true},
		"itself a zombie":          {with(12, stat{'Z', 11, 60}), 12, 5, false},
		"a dead parent":            {with(11, stat{'Z', root, 60}), 12, 5, false},
		"a vanished parent":        {with(12, stat{'R', 13, 60}), 12, 5, false},
		"a younger parent":         {with(11, stat{'S', root, 61}), 12, 5, false},
		"another root":             {with(root, stat{'S', 1, 51}), 12, 5, false},
		"a dead root":              {with(root, stat{'Z', 1, 50}), 12, 5, false},
		"a circle of two":          {with(11, stat{'S', 12, 60}), 12, 50, false},
		"its own parent":           {with(12, stat{'S', 12, 60}), 12, 50, false},
		"a parent outside":         {with(12, stat{'S', 0, 60}), 12, 5, false},
		"no parent there could be": {with(12, stat{'S', -1, 60}), 12, 5, false},
	} {
		at, err := descends(c.pid, c.depth, is(ID{root, 50}), c.table.read)
		if c.ok != (err == nil) || err != nil && !errdefs.Is(err, errdefs.Denied) || c.ok && at != (ID{root, 50}) {
			t.Errorf("%s: %v, %v", name, at, err)
		}
	}
}

// Between two looks the world may change: whatever does, nobody gets in who was
// outside before.
func TestDescendsWhileThingsChange(t *testing.T) {
	inside := table{1: {'S', 0, 1}, 10: {'S', 1, 50}, 11: {'S', 10, 60}}
	for name, change := range map[string]struct {
		before table // the attacker, 30, child of 20, both outside
		after  table // after so many reads
		reads  int
	}{
		// 20 ends, its number goes to a process inside; 30 gets another parent.
		"the parent's number is reused": {table{20: {'S', 1, 55}, 30: {'S', 20, 56}}, table{20: {'S', 11, 70}, 30: {'S', 1, 56}}, 1},
		// The same, and its number is old enough by accident.
		"and starts in the same tick": {table{20: {'S', 1, 55}, 30: {'S', 20, 56}}, table{20: {'S', 11, 56}, 30: {'S', 1, 56}}, 1},
		"its own number is reused":    {table{20: {'S', 1, 55}, 30: {'S', 20, 56}}, table{20: {'S', 1, 55}, 30: {'S', 11, 70}}, 1},
		"at the second look":          {table{20: {'S', 1, 55}, 30: {'S', 20, 56}}, table{20: {'S', 11, 70}, 30: {'S', 11, 70}}, 2},
		"it vanishes":                 {table{20: {'S', 1, 55}, 30: {'S', 20, 56}}, table{20: {'S', 1, 55}}, 2},
	} {
		n := 0
		_, err := descends(30, 50, is(ID{10, 50}), func(pid int) (stat, error) {
			now := change.before
			if n++; n > change.reads {
				now = change.after
			}
			if st, ok := now[pid]; ok {
				return st, nil
			}
			return inside.read(pid)
		})
		if !errdefs.Is(err, errdefs.Denied) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// In any world that stands still: in if and only if the parents, each at most as
// old as its child's, lead to the root in time.
func TestDescendsInAnyWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 12
		world := table{}
		for pid := 1; pid <= most; pid++ {
			if rapid.IntRange(0, 9).Draw(t, "there") > 0 {
				world[pid] = stat{
					rapid.SampledFrom([]byte("SRZ")).Draw(t, "state"), rapid.IntRange(0, most).Draw(t, "parent"), uint64(rapid.IntRange(1, 3).Draw(t, "start")),
				}
			}
		}
		depth := rapid.IntRange(0, most).Draw(t, "depth")
		root := ID{rapid.IntRange(1, most).Draw(t, "root"), uint64(rapid.IntRange(1, 3).Draw(t, "root start"))}
		pid := rapid.IntRange(1, most).Draw(t, "pid")
		want := false
		for at, steps, start := pid, 0, uint64(9); steps <= depth; steps++ {
			st, ok := world[at]
			if !ok || st.state == 'Z' || st.start > start {
				break
			}
			if at == root.PID && st.start == root.Start {
				want = true
				break
			}
			at, start = st.parent, st.start
		}
		if _, err := descends(pid, depth, is(root), world.read); want != (err == nil) {
			t.Fatalf("%v: %d below %v within %d: %v", world, pid, root, depth, err)
		}
	})
}

func TestDescendsHere(t *testing.T) {
	self, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// Shells below shells, the innermost of which says who it is and waits.
	script := "echo $$; read x"
	for range 3 {
		script = "sh -c '" + strings.ReplaceAll(script, "'", `'\''`) + "'; :"
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	line := make([]byte, 16)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	deep := 0
	for _, c := range strings.TrimSpace(string(line[:n])) {
		deep = deep*10 + int(c-'0')
	}
	if at, err := Descends(deep, 64, is(self)); err != nil || at != self {
		t.Errorf("%v, %v", at, err)
	}
	top, err := Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Descends(os.Getpid(), 64, is(top)); !errdefs.Is(err, errdefs.Denied) {
		t.Errorf("a parent descends from its child: %v", err)
	}
	top.Start++
	if _, err := Descends(deep, 64, is(top)); !errdefs.Is(err, errdefs.Denied) {
		t.Errorf("another start time: %v", err)
	}
}
