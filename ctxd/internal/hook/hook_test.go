package hook

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cortexfs.org/ctxd/internal/broker"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/view"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// TestPre: no hook looks, one lets pass, one refuses and those behind it are not
// asked; the tool's come behind the agent's.
func TestPre(t *testing.T) {
	w := newWorld(t)
	c := w.call("{}")
	if looked, err := w.Pre(t.Context(), c); looked || err != nil || w.Looks(c.Agent, c.Intent.Path) {
		t.Errorf("without hooks: %t, %v", looked, err)
	}
	path := w.script(pre, "10-yes", "exit 0")
	w.allows()
	looks := w.Looks(c.Agent, "")
	w.ok(os.Chmod(path, 0o644))
	if !looks || !w.Looks(c.Agent, "") {
		t.Error("one hook, and one that is broken, do not look")
	}
	w.ok(os.Chmod(path, 0o755))
	w.script(pre, "20-no", "echo not on a Friday; exit 3")
	w.script(pre, "30-later", "exit 4")
	w.refuses(pre + "20-no: exit code 3: not on a Friday")
	w.ok(os.RemoveAll(filepath.Join(w.layout.Root, pre)))
	w.script("tool/calc.d/hooks/pre.d/", "10-no", "exit 1")
	w.refuses("/ctx/tool/calc.d/hooks/pre.d/10-no: exit code 1")
	w.script(pre, "90-first", "exit 9")
	w.refuses(pre + "90-first")
}

// TestPost: every hook is told, and of each that fails it is said; hooks before the
// call are not asked again.
func TestPost(t *testing.T) {
	w := newWorld(t)
	w.script(pre, "10", "exit 1")
	if failed := w.Post(t.Context(), w.call("{}"), "ok"); failed != nil {
		t.Errorf("without hooks: %v", failed)
	}
	w.script(post, "10", "printf 'bad \\033[2J\\n' >&2; exit 7")
	w.script(post, "20", "cat >/workspace/told")
	w.script(post, "30", "exit 1")
	failed := w.Post(t.Context(), w.call("{}"), "error")
	if len(failed) != 2 || failed[0].Hook != post+"10" || failed[0].Reason != `exit code 7: bad \x1b[2J` || failed[1].Hook != post+"30" {
		t.Errorf("%+v", failed)
	}
	if told := w.made("told"); !strings.Contains(told, `"hook":"post"`) || !strings.HasSuffix(told, "\"status\":\"error\"}\n") {
		t.Errorf("it was told %q", told)
	}
	w.ok(os.Chmod(filepath.Join(w.layout.Root, post, "20"), 0o644))
	failed = w.Post(t.Context(), w.call("{}"), "ok")
	if len(failed) != 1 || !strings.Contains(failed[0].Reason, post+"20: is not executable") {
		t.Errorf("%+v", failed)
	}
}

// TestTold: a hook reads one line, with the arguments whole and as they are.
func TestTold(t *testing.T) {
	w := newWorld(t)
	w.script(post, "10", "cat >/workspace/told")
	long := strings.Repeat("x", libctx.MaxCallArguments-100)
	for _, args := range []string{
		`{"path":"a b","n":9007199254740993,"s":"\u0061\/"}`, "{\n \"path\" : [ 1.0,\t1e0 ]\n}", `{"s":"` + long + `"}`, `{"s":"line` + "\u2028" + `"}`,
	} {
		c := w.call(args)
		if failed := w.Post(t.Context(), c, "ok"); failed != nil {
			t.Fatal(failed[0].Reason)
		}
		text := w.made("told")
		if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "}\n") {
			t.Errorf("%.80q is no line", text)
		}
		var got map[string]jsontext.Value
		w.ok(json.Unmarshal([]byte(text), &got))
		want := jsontext.Value(args)
		w.ok(want.Compact(jsontext.PreserveRawStrings(true)))
		if string(got["arguments"]) != string(want) {
			t.Errorf("%.100s of %.100s", got["arguments"], want)
		}
		delete(got, "arguments")
		all, err := json.Marshal(got, json.Deterministic(true))
		w.ok(err)
		if s := string(all); s != `{"agent":"coder","call":"call-1","cwd":"/workspace","digest":"`+c.Digest.String()+`","effect":"pure","hook":"post",`+
			`"path":"/ctx/tool/calc","run":"01KB9QZ3M8T5V2N7X4C6D1E0FG","session":"default","status":"ok","tool":"calc","via":"tsh"}` {
			t.Error(s)
		}
	}
	w.ok(os.RemoveAll(filepath.Join(w.layout.Root, post)))
	w.script(pre, "10", `read -r line && case $line in '{"hook":"pre",'*'"arguments":{"a":1}}') exit 0 ;; esac; echo "$line"; exit 1`)
	if _, err := w.Pre(t.Context(), w.call(`{ "a": 1 }`)); err != nil {
		t.Error(err)
	}
}

// TestBadHooks is what a hook may do to those who wait for it. All of it refuses.
func TestBadHooks(t *testing.T) {
	for name, c := range map[string]struct{ script, says string }{
		"prints endlessly":         {"exec yes", "printed more than 65536 bytes"},
		"prints endless errors":    {"exec yes >&2", "printed more than 65536 bytes"},
		"prints and ends well":     {"head -c 70000 /dev/zero; exit 0", "printed more than 65536 bytes"},
		"killed":                   {"kill -9 $$", "exit code 137"},
		"its interpreter is none":  {"", "interpreter"},
		"fails and leaves a child": {"sleep 1000000 & exit 5", "exit code 5"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if w.script(pre, "10", c.script); c.script == "" {
				w.write(pre+"10", "#!/no/such/interpreter\n", 0o755)
			}
			w.refuses(pre+"10", c.says)
		})
	}
}

// TestSlowHooks: what does not end in time is ended, and refuses.
func TestSlowHooks(t *testing.T) {
	for name, script := range map[string]string{
		"waits":           "exec sleep 1000000",
		"ignores SIGTERM": "trap '' TERM; while :; do sleep 1000000; done",
		"answers SIGTERM": "trap 'exit 0' TERM; while :; do sleep 1000000 & wait; done",
		"forks":           "trap '' TERM; (while :; do sleep 1000000; done) & while :; do sleep 1000000; done",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.each = 300 * time.Millisecond // it never ends by itself, however slow this machine is
			w.script(pre, "10", script)
			w.refuses(pre + "10: it ran longer than 300ms")
		})
	}
	w := newWorld(t)
	w.together = 300 * time.Millisecond
	w.script(pre, "10", "exec sleep 1000000")
	w.refuses("the hooks of the call ran longer than 300ms")
	w.script(post, "10", "exec sleep 1000000")
	w.script(post, "20", "exit 0")
	if failed := w.Post(t.Context(), w.call("{}"), "ok"); len(failed) != 2 || !strings.Contains(failed[1].Reason, "longer than") {
		t.Errorf("%+v", failed)
	}
}

// TestLeftBehind: what a hook started is gone when it is, and it need not read what
// it is told.
func TestLeftBehind(t *testing.T) {
	w := newWorld(t)
	w.script(pre, "10", "setsid sleep 1000000 & exec >&- 2>&-; exit 0")
	long := `{"s":"` + strings.Repeat("x", 1<<20) + `"}`
	if _, err := w.Pre(t.Context(), w.call(long)); err != nil {
		t.Error(err)
	}
}

// TestCancelled: a run that is cancelled waits for no hook, and does not take its end
// for a refusal.
func TestCancelled(t *testing.T) {
	w := newWorld(t)
	why := errors.New("the person has gone")
	fifo := filepath.Join(w.ws, "begun")
	w.ok(unix.Mkfifo(fifo, 0o600))
	w.ok(os.Chown(fifo, int(w.id.UID), int(w.id.GID)))
	pipe, err := os.OpenFile(fifo, os.O_RDWR, 0)
	w.ok(err)
	defer pipe.Close()
	// cancelled is a context that ends once a hook has begun.
	cancelled := func() context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			pipe.Read(make([]byte, 1)) // until the hook writes
			cancel(why)
		}()
		t.Cleanup(func() { <-begun })
		return ctx
	}
	const stubborn = "trap '' TERM; echo >/workspace/begun; while :; do sleep 1000000; done"
	w.script(post, "10", stubborn)
	w.script(post, "20", "echo >/workspace/second")
	failed := w.Post(cancelled(), w.call("{}"), "ok")
	if len(failed) != 2 || failed[0].Reason != why.Error() || failed[1].Reason != why.Error() || w.made("second") != "" {
		t.Errorf("%+v", failed)
	}
	w.script(pre, "10", stubborn)
	ctx := cancelled()
	if _, err := w.Pre(ctx, w.call("{}")); !errors.Is(err, why) {
		t.Error(err)
	}
	w.script(pre, "10", "exit 0")
	if _, err := w.Pre(ctx, w.call("{}")); !errors.Is(err, why) {
		t.Error(err)
	}
}

// TestNotBegun: hooks after a call hear of what was begun. Without a permit nothing is.
func TestNotBegun(t *testing.T) {
	w := newWorld(t)
	c := w.call("{}").Call
	c.Arguments = jsontext.Value(`{"args":["tools"]}`) // of the tool shell itself, which needs no more than a permit
	admitted, decision, err := w.tools.Admit(c)
	w.ok(err)
	if admitted == nil {
		t.Fatal(decision.Reason)
	}
	defer admitted.Close()
	res, err := admitted.Execute(t.Context(), nil)
	if err != nil || res.Status != "error" || admitted.Begun() {
		t.Errorf("%+v, %v, begun is %t", res, err, admitted.Begun())
	}
	intent := admitted.Intent()
	var b broker.Broker
	token, err := b.Grant(intent.Digest())
	w.ok(err)
	reserved, err := b.Reserve(token, intent.Digest())
	w.ok(err)
	permit, err := reserved.Commit()
	w.ok(err)
	if res, err = admitted.Execute(t.Context(), permit); err != nil || res.Status != "ok" || !admitted.Begun() {
		t.Errorf("%+v, %v, begun is %t", res, err, admitted.Begun())
	}
}

// TestReplaced: the hook that runs is the one that was looked at.
func TestReplaced(t *testing.T) {
	w := newWorld(t)
	path := w.script(pre, "10", "exit 6")
	c := w.call("{}")
	hooks, err := c.Agent.Hooks(w.layout, "", view.Before)
	w.ok(err)
	other := w.script("agent/", "evil", "exit 0")
	w.ok(os.Rename(other, path))
	var no error
	w.run(t.Context(), c, view.Before, "", hooks, func(_ *view.Hook, err error) bool { no = err; return true })
	if no == nil || !strings.Contains(no.Error(), "exit code 6") {
		t.Errorf("after the exchange: %v", no)
	}
	hooks, err = c.Agent.Hooks(w.layout, "", view.Before)
	w.ok(err)
	w.script(pre, "10", "exit 0 # written over the one that was looked at")
	w.run(t.Context(), c, view.Before, "", hooks, func(_ *view.Hook, err error) bool { no = err; return true })
	if no == nil || !strings.Contains(no.Error(), "was changed") {
		t.Errorf("after it was written to: %v", no)
	}
}

// BenchmarkNone is what a call costs that no hook looks at or hears of.
func BenchmarkNone(b *testing.B) {
	w := newWorld(b)
	c := w.call("{}")
	for b.Loop() {
		if w.Looks(c.Agent, c.Intent.Path) {
			b.Fatal("it looks")
		}
		w.Pre(b.Context(), c)
		w.Post(b.Context(), c, "ok")
	}
}

// BenchmarkPre is what one hook adds to a call.
func BenchmarkPre(b *testing.B) {
	w := newWorld(b)
	w.script(pre, "10", "exit 0")
	c := w.call("{}")
	for b.Loop() {
		if _, err := w.Pre(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}
