package supervise

import (
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	"pgregory.net/rapid"
)

var (
	ownTree   = paths.New(paths.Env{UID: 1000, Home: "/home/a", RuntimeDir: "/run/user/1000"}, "/home/a/.local/share/cortexfs")
	otherTree = paths.New(paths.Env{UID: 1000, Home: "/home/a", RuntimeDir: "/run/user/1000"}, "/srv/tree")
)

// Names as systemd-escape writes them.
func TestUnit(t *testing.T) {
	for _, c := range []struct {
		agent, session, want string
	}{
		{"coder", "default", "cortexfs-terminal:coder:default.service"},
		{"a-b", "c", `cortexfs-terminal:a\x2db:c.service`},
		{"a", "b-c", `cortexfs-terminal:a:b\x2dc.service`},
		{"a.b_c+d", "0", `cortexfs-terminal:a.b_c\x2bd:0.service`},
	} {
		if got := Unit(ownTree, libctx.Agent(c.agent), libctx.Session(c.session)); got != c.want {
			t.Errorf("%s/%s: %s, not %s", c.agent, c.session, got, c.want)
		}
	}
	other := Unit(otherTree, "coder", "default")
	key, ok := strings.CutPrefix(strings.TrimSuffix(other, ".service"), "cortexfs-terminal:coder:default:")
	if !ok || len(key) != 16 {
		t.Errorf("in another tree: %s", other)
	}
	if _, _, err := ParseUnit(ownTree, other); err == nil {
		t.Error("a unit of another tree is one of this")
	}
	for _, part := range []struct{ text, want string }{{"/", "-"}, {".x", `\x2ex`}, {"ä", `\xc3\xa4`}, {`\`, `\x5c`}, {"", ""}} {
		if got := escape(part.text); got != part.want || unescape(got) != part.text {
			t.Errorf("%q: %q, back %q", part.text, got, unescape(got))
		}
	}
}

func TestUnitsAreTheirOwn(t *testing.T) {
	name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._+-]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		a, s := name.Draw(t, "agent"), name.Draw(t, "session")
		agent, err1 := libctx.ParseAgent(a)
		session, err2 := libctx.ParseSession(s)
		if err1 != nil || err2 != nil {
			return
		}
		for _, l := range []paths.Layout{ownTree, otherTree} {
			gotA, gotS, err := ParseUnit(l, Unit(l, agent, session))
			if err != nil || gotA != agent || gotS != session {
				t.Fatalf("%s/%s comes back as %s/%s, %v", a, s, gotA, gotS, err)
			}
		}
	})
}

func FuzzParseUnit(f *testing.F) {
	for _, unit := range []string{
		Unit(ownTree, "coder", "default"), Unit(otherTree, "a-b", "c.d+e"), `cortexfs-terminal:a\x2:b.service`,
		`cortexfs-terminal:\x61:b.service`, "cortexfs-terminal:a.service", "ssh.service", "", "::.service",
	} {
		f.Add(unit)
	}
	f.Fuzz(func(t *testing.T, unit string) {
		for _, l := range []paths.Layout{ownTree, otherTree} {
			agent, session, err := ParseUnit(l, unit)
			if err != nil {
				if agent != "" || session != "" {
					t.Error("an error and names")
				}
				continue
			}
			if Unit(l, agent, session) != unit {
				t.Errorf("%q is %s/%s, whose unit is %q", unit, agent, session, Unit(l, agent, session))
			}
		}
	})
}

func FuzzParseHolder(f *testing.F) {
	for _, line := range []string{"4711 81234 8a4b0c1e\n", "4711 81234 8a4b0c1e", "1 2\n", "-1 2 x\n", "01 2 x\n", "1 2 x\ny\n", "", "1  x\n"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if id, boot, ok := procid.ParseLine(line); ok && id.Line(boot) != line {
			t.Errorf("%q is %+v of %q", line, id, boot)
		}
	})
}

// A machine may have both hierarchies, and systemd uses one of them.
func TestUnitGroups(t *testing.T) {
	for text, want := range map[string]string{
		"0::/user.slice/app.slice/x.service\n":                    "/user.slice/app.slice/x.service",
		"12:pids:/a\n1:name=systemd:/b/x.service\n0::/\n":         "/b/x.service /",
		"9:name=systemd:/\n8:pids:/\n0::/u/x.service\n":           "/ /u/x.service",
		"3:cpu,cpuacct:/a\n":                                      "",
		"0::/a b/x.service\n1:name=other:name=systemd:/y.service": "/a b/x.service",
	} {
		if got := strings.Join(unitGroups(text), " "); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

func FuzzUnitGroups(f *testing.F) {
	for _, text := range []string{
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service\n",
		"12:pids:/a\n1:name=systemd:/b/x.service\n0::/c\n", "", "0::", ":name=systemd:\n", "x\n\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, group := range unitGroups(text) {
			if strings.Contains(group, "\n") || !strings.Contains(text, group) {
				t.Errorf("%q of %q", group, text)
			}
		}
	})
}

// Of a user without a manager systemd is refused with a way out, and auto does
// without.
func TestNoManager(t *testing.T) {
	const nobody = 3_999_999_999
	if _, err := New(t.Context(), Systemd, ownTree, nobody); !errdefs.Is(err, errdefs.Unavailable) || !strings.Contains(errdefs.HintOf(err), "--supervisor direct") {
		t.Errorf("%v, hint %q", err, errdefs.HintOf(err))
	}
	if s, err := New(t.Context(), Auto, ownTree, nobody); err != nil || s.Name() != Direct {
		t.Errorf("%v, %v", s, err)
	}
}
