package terminal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// place is the terminal of session s of coder in a tree of its own.
func place(t *testing.T, s libctx.Session) Place {
	t.Helper()
	top := t.TempDir()
	l := paths.New(paths.Env{UID: os.Geteuid(), Home: top, RuntimeDir: top}, filepath.Join(top, "tree"))
	if err := os.Mkdir(l.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	return Place{Layout: l, Owner: asuser.Self(), Agent: "coder", Session: s}
}

func create(t *testing.T, p Place) {
	t.Helper()
	d, err := p.Create(Meta{Cwd: "/workspace", Command: []string{"/ctx/bin/tsh"}, Socket: "/run/x", CreatedAt: 7, Size: "80x24", Supervisor: "direct", Emit: true})
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
}

func (p Place) file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.Layout.TerminalResource(p.Owner.UID, p.Agent, p.Session), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func receipt(s libctx.Session) Receipt {
	return Receipt{Version: 1, Control: Object{1, 2}, Terminal: Launch{
		Session: s, Supervisor: "direct", Unit: "u", Invocation: "i", PID: 77, Start: 5, Boot: "b",
		Socket: Socket{"/run/x", 3, 4}, Identity: Identity{1000, 1000, []uint32{4}},
	}}
}

func TestLife(t *testing.T) {
	p := place(t, "default")
	if _, err := p.Load(); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("before the first start: %v", err)
	}
	if err := p.SetState(Running, nil); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("a state without a terminal: %v", err)
	}
	create(t, p)
	for name, want := range map[string]string{
		"state": "created\n", "status": "created\n", "cwd": "/workspace\n", "owner": uidText(p.Owner.UID) + "\n",
		"meta.json": `{"id":"terminal-coder-default","agent":"coder","session":"default","owner":"` + uidText(p.Owner.UID) +
			`","cwd":"/workspace","command":["/ctx/bin/tsh"],"state":"created","socket":"/run/x","created_at":7,"size":"80x24","supervisor":"direct","emit":true}` + "\n",
	} {
		if got := p.file(t, name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if err := p.SetState(Running, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.SetReceipt(receipt("default")); err != nil {
		t.Fatal(err)
	}
	code := 3
	if err := p.SetState(Exited, func(m *Meta) { m.ExitCode = &code }); err != nil {
		t.Fatal(err)
	}
	m, err := p.Load()
	if err != nil || m.State != Exited || m.ExitCode == nil || *m.ExitCode != 3 || p.file(t, "state") != "exited\n" || p.file(t, "status") != "exited\n" {
		t.Errorf("%+v, %v", m, err)
	}
	got, err := ParseReceipt(m.Receipt)
	if d := cmp.Diff(receipt("default"), got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	// What this version does not know stays; what was of the last start goes.
	at := p.Layout.TerminalResource(p.Owner.UID, p.Agent, p.Session)
	text := strings.Replace(p.file(t, "meta.json"), `{"id"`, `{"later":{"a":1},"id"`, 1)
	if err := os.WriteFile(filepath.Join(at, "meta.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	create(t, p)
	if m, err = p.Load(); err != nil || m.State != Created || m.ExitCode != nil || m.Receipt != nil || string(m.Rest) != `{"later":{"a":1}}` {
		t.Errorf("%+v, %v", m, err)
	}
	for _, name := range []string{".", "meta.json", "state", "status", "owner", "cwd"} {
		want := os.FileMode(0o600)
		if name == "." {
			want = 0o700
		}
		if st, err := os.Stat(filepath.Join(at, name)); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(at, atomicfile.TempPrefix+"*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for range 2 {
		if err := p.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(at); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after its removal: %v", err)
	}
}

// A damaged or foreign meta.json is reported, and replaced by a start.
func TestDamagedMeta(t *testing.T) {
	p := place(t, "default")
	create(t, p)
	at := filepath.Join(p.Layout.TerminalResource(p.Owner.UID, p.Agent, p.Session), "meta.json")
	for _, text := range []string{"", "{", `{"id":"terminal-coder-default"}`, strings.Replace(p.file(t, "meta.json"), "created", "asleep", 1), strings.ReplaceAll(p.file(t, "meta.json"), "coder", "other")} {
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Load(); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
	create(t, p)
	if _, err := p.Load(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", at); err != nil {
		t.Fatal(err)
	}
	if err := p.SetReceipt(receipt("default")); err == nil {
		t.Error("a link was followed")
	}
	if _, err := (Place{Layout: p.Layout, Owner: p.Owner, Agent: "coder", Session: "../x"}).Load(); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("a name that is none: %v", err)
	}
}

// Of changes made at the same moment none undoes another.
func TestSwap(t *testing.T) {
	p := place(t, "default")
	create(t, p)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 50 {
				if err := p.SetReceipt(receipt("default")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	code := 3
	if err := p.SetState(Exited, func(m *Meta) { m.ExitCode = &code }); err != nil {
		t.Error(err)
	}
	wg.Wait()
	m, err := p.Load()
	if err != nil || m.Receipt == nil {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestProject(t *testing.T) {
	dir := t.TempDir()
	d, err := atomicfile.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := Projected(d); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("nothing there: %v", err)
	}
	file := filepath.Join(dir, "meta.json")
	for _, text := range []string{"", "{}\n", "{\"b\": [1, 2],\n\"a\":\"x\"}\n"} {
		if text != "" {
			if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
				t.Fatal(err)
			}
		}
		if err := Project(d, receipt("s")); err != nil {
			t.Fatal(err)
		}
		r, err := Projected(d)
		if diff := cmp.Diff(receipt("s"), r); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	var got map[string]jsontext.Value
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &got) != nil || len(got) != 3 || string(got["a"]) != `"x"` {
		t.Errorf("%s, %v", text, err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	for _, bad := range []string{"[]\n", "{", "{\"a\":1,\"a\":2}\n", `{"a":"` + strings.Repeat("x", libctx.MaxControlFile) + "\"}\n"} {
		if err := os.WriteFile(file, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := Project(d, receipt("s")); err == nil {
			t.Errorf("%.20q was changed", bad)
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != bad {
			t.Errorf("%.20q became %.20q, %v", bad, after, err)
		}
	}
}

func TestReceiptIsExact(t *testing.T) {
	text, err := receipt("default").Text()
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	for _, change := range [][2]string{
		{`"version":1`, `"version":2`}, {`"version":1,`, ``}, {`{"version"`, `{"more":1,"version"`}, {`"dev":1,`, ``}, {`"dev":1`, `"dev":-1`},
		{`"unit":"u"`, `"unit":""`}, {`"unit":"u",`, ``}, {`"unit":"u"`, `"unit":null`}, {`"pid":77`, `"pid":1`}, {`"start":5`, `"start":0`},
		{`"groups":[4]`, `"groups":[4],"more":[]`}, {`"groups":[4]`, `"groups":null`}, {`"session":"default"`, `"session":"../x"`},
		{`"control":{`, `"control":[{`}, {`"path":"/run/x"`, `"path":"/run/x","path":"/run/x"`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%s is not in %s", change[0], good)
		}
		if _, err := ParseReceipt([]byte(bad)); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzParseReceipt(f *testing.F) {
	text, err := receipt("default").Text()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(text))
	f.Add([]byte(`{"version":1,"control":{},"terminal":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseReceipt(text)
		if err != nil {
			return
		}
		again, err := r.Text()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseReceipt(again); err != nil || !cmp.Equal(r, got) {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

func FuzzParseMeta(f *testing.F) {
	f.Add([]byte(`{"id":"terminal-coder-default","agent":"coder","session":"default","owner":"1000","cwd":"/workspace","command":["tsh"],"state":"running","socket":"/x","created_at":1,"emit":true,"later":[1]}`))
	f.Add([]byte(`{"id":"terminal-a-b","agent":"a","session":"b","owner":"01","state":"exited","exit_code":3,"runtime_receipt":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseMeta(text)
		if err != nil {
			return
		}
		again, err := m.Text()
		if err != nil {
			if errdefs.Is(err, errdefs.TooBig) {
				return
			}
			t.Fatal(err)
		}
		if _, err := ParseMeta(again); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

func TestReport(t *testing.T) {
	ready := Report{Ready: true, PID: 5}
	failed := Failed(errdefs.New(errdefs.Invalid, "workspace \xff: is a link").WithHint("name it"))
	for _, r := range []Report{ready, failed} {
		got, err := ParseReport(r.Text())
		if err != nil || got.Ready != r.Ready || got.Code != r.Code || got.Hint != r.Hint {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if ready.Err() != nil || errdefs.KindOf(failed.Err()) != errdefs.Invalid || errdefs.HintOf(failed.Err()) != "name it" {
		t.Errorf("%v", failed.Err())
	}
	for _, bad := range []string{"", "{}", `{"ready":true}`, `{"ready":true,"pid":1,"code":"EIO"}`, `{"pid":4}`} {
		if r, err := ParseReport([]byte(bad)); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%q: %+v, %v", bad, r, err)
		}
	}
}

func TestList(t *testing.T) {
	p := place(t, "default")
	if l, err := List(p.Layout, p.Owner); err != nil || len(l) > 0 {
		t.Errorf("of nothing: %v, %v", l, err)
	}
	other := p
	other.Session = "b-c"
	create(t, p)
	create(t, other)
	broken := p
	broken.Agent = "a"
	create(t, broken)
	if err := os.WriteFile(filepath.Join(p.Layout.TerminalResource(p.Owner.UID, "a", "default"), "meta.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(p.Layout.Session(p.Owner.UID, "coder", "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := List(p.Layout, p.Owner)
	var names []string
	for _, one := range l {
		names = append(names, one.String())
	}
	if d := cmp.Diff([]string{"a/default", "coder/b-c", "coder/default"}, names); err != nil || d != "" {
		t.Fatalf("%v\n%s", err, d)
	}
	if l[0].Err == nil || l[1].Err != nil || l[1].Meta.ID != "terminal-coder-b-c" {
		t.Errorf("%+v", l)
	}
}

func read(t *testing.T, e *Events) (seqs []uint64, damage []string) {
	t.Helper()
	for {
		event, err := e.Next()
		var d *Damage
		switch {
		case errors.Is(err, io.EOF):
			return seqs, damage
		case errors.As(err, &d):
			damage = append(damage, d.Error())
		case err != nil:
			t.Fatal(err)
		default:
			seqs = append(seqs, event.Seq)
		}
	}
}
