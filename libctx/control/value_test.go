package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"pgregory.net/rapid"
)

var (
	genName = rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._+-]{0,20}x`)
	genDir  = rapid.StringMatching(`(/[A-Za-z0-9_ü ]{1,10}){1,4}`)
	genID   = rapid.Uint32Max(1<<32 - 2)
)

// distinct draws a list without doubles.
func distinct[T comparable](g *rapid.Generator[T]) *rapid.Generator[[]T] {
	return rapid.SliceOfNDistinct(g, 0, 8, rapid.ID[T])
}

// roundTrip: parse(write(v)) is v, and the text is the canonical one.
func roundTrip[T any](t *testing.T, file string, gen *rapid.Generator[T], write func(T) []byte, parse func([]byte) (T, error), equal func(a, b T) bool) {
	t.Run(file, rapid.MakeCheck(func(t *rapid.T) {
		v := gen.Draw(t, "value")
		text := write(v)
		got, err := parse(text)
		if err != nil || !equal(got, v) {
			t.Fatalf("%q is read as %v, %v", text, got, err)
		}
		of := kinds[slices.IndexFunc(kinds, func(of string) bool { return slices.Contains(filesOf(of), file) })]
		if again, err := canonicaler(of)(file, text); err != nil || string(again) != string(text) {
			t.Fatalf("%q is written as %q, %v", text, again, err)
		}
	}))
}

func same[T comparable](a, b T) bool { return a == b }

func TestValuesSurviveWriting(t *testing.T) {
	roundTrip(t, "perm", rapid.Map(rapid.IntRange(0, 7), func(i int) Perm { return Perm(i) }), stringer[Perm], ParsePermFile, same)
	roundTrip(t, "window", rapid.Map(rapid.Uint32(), func(n uint32) Window { return Window(n) }), stringer[Window], ParseWindow, same)
	roundTrip(t, "limit", rapid.Map(rapid.Uint32(), func(n uint32) Limit { return Limit(n) }), stringer[Limit], ParseLimit, same)
	roundTrip(t, "max_output", rapid.Uint32Min(1), decimal[uint32], ParseMaxOutput, same)
	roundTrip(t, "fallback", distinct(rapid.Map(genName, func(s string) libctx.Model { return libctx.Model("p/" + s) })), words[libctx.Model], ParseFallback, slices.Equal)
	roundTrip(t, "result_bytes", rapid.IntRange(1, libctx.MaxToolResultHard), decimal[int], ParseResultBytes, same)
	roundTrip(t, "timeout", rapid.Map(rapid.Int64Range(1, int64(libctx.MaxToolTimeout)), func(n int64) time.Duration { return time.Duration(n) }), writeTimeout, ParseTimeout, same)
	roundTrip(t, "pid", rapid.IntRange(0, 1<<31-1), writePid, ParsePid, same)
	roundTrip(t, "owner", genID, decimal[uint32], func(b []byte) (uint32, error) { return ParseUint32("owner", b) }, same)
	roundTrip(t, "groups", distinct(genID), decimals, ParseGroups, slices.Equal)
	roundTrip(t, "path", distinct(genDir), List, ParsePath, slices.Equal)
	roundTrip(t, "cwd", genDir, Line, ParseCwd, same)
	roundTrip(t, "protect", distinct(rapid.Map(genDir, func(s string) string { return s[1:] })), List, ParseProtect, slices.Equal)
	roundTrip(t, "tools", distinct(rapid.Map(genName, func(s string) libctx.Tool { return libctx.Tool(s) })), words[libctx.Tool], ParseTools, slices.Equal)
	roundTrip(t, "cap", distinct(genName), List, ParseCap, slices.Equal)
	roundTrip(t, "label", rapid.Custom(func(t *rapid.T) Label {
		return Label{genName.Draw(t, "user"), genName.Draw(t, "role"), libctx.Subject(genName.Draw(t, "type")), genName.Draw(t, "level")}
	}), stringer[Label], ParseLabel, same)
	roundTrip(t, "parent", rapid.Custom(func(t *rapid.T) Parent {
		p := Parent{Agent: libctx.Agent(genName.Draw(t, "agent"))}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return Parent{}
		case 1:
			p.Session, p.Run = libctx.Session(genName.Draw(t, "session")), genName.Draw(t, "run")
		}
		return p
	}), writeParent, ParseParent, same)
	roundTrip(t, "env", rapid.Custom(func(t *rapid.T) []string {
		keys := distinct(rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_]{0,8}`)).Draw(t, "keys")
		for i := range keys {
			keys[i] += "=" + rapid.StringMatching(`[ -~\tü]{0,20}`).Draw(t, "value")
		}
		return keys
	}), List, ParseEnv, slices.Equal)
	roundTrip(t, "effect", rapid.Map(rapid.SampledFrom(effects), func(s string) Effect { return Effect(s) }), word[Effect], ParseEffectFile, same)
	roundTrip(t, "replay", rapid.Bool(), writeReplay, ParseReplay, same)
	roundTrip(t, "parallel", rapid.Bool(), writeParallel, ParseParallel, same)
}

// A colon list and one directory a line mean the same.
func TestPathInBothForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dirs := rapid.SliceOfNDistinct(genDir, 1, 6, rapid.ID[string]).Draw(t, "dirs")
		got, err := ParsePath(Line(strings.Join(dirs, ":")))
		if err != nil || !slices.Equal(got, dirs) {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

func TestPerm(t *testing.T) {
	for _, c := range []struct {
		has  string
		bit  Perm
		want bool
	}{
		{"---", 0, true}, {"---", Read, false}, {"r--", Read, true}, {"-wx", Read, false},
		{"-w-", Write, true}, {"--x", Execute, true}, {"rw-", Read | Write, true}, {"rw-", Execute, false},
	} {
		p, err := ParsePerm(c.has)
		if err != nil || p.Has(c.bit) != c.want {
			t.Errorf("%s has %s: %v, %v", c.has, c.bit, p.Has(c.bit), err)
		}
	}
}

func TestEffectPerm(t *testing.T) {
	want := map[Effect]string{
		Pure: "---", WorkspaceRead: "r--", HostRead: "r--", WorkspaceMutation: "-w-", HostMutation: "-w-",
		HostProcess: "--x", Network: "--x", Delegation: "--x", Extension: "--x", Unknown: "--x",
	}
	if len(want) != len(effects) {
		t.Fatal("a class is missing here")
	}
	for e, p := range want {
		if e.Perm().String() != p {
			t.Errorf("%s needs %s, want %s", e, e.Perm(), p)
		}
	}
}

func TestRuntimeOwned(t *testing.T) {
	for _, name := range []string{
		"CTX_ROOT", "CTX_HOME", "CTX_AGENT", "CTX_AGENT_SUBJECT", "CTX_PATH", "CTX_SESSION", "CTX_RUN_ID", "CTX_STEP",
		"CTX_CONTROL_SOCKET", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "PATH",
		"CTX_CONTEXT_WINDOW_TOKENS", "CTX_CONTEXT_WINDOW_CHARS", "CTX_WHATEVER_COMES",
	} {
		if !RuntimeOwned(name) {
			t.Errorf("%s can be set", name)
		}
	}
	for _, name := range []string{"EDITOR", "LC_ALL", "HOMES", "CTX", "path", ""} {
		if RuntimeOwned(name) {
			t.Errorf("%s can not be set", name)
		}
	}
}

func TestLabelOf(t *testing.T) {
	l := LabelOf("coder")
	if l.String() != "user_u:agent_r:coder_t:s0" || l.Subject != libctx.Agent("coder").Subject() {
		t.Error(l)
	}
}
