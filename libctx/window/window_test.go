package window

import (
	"slices"
	"strconv"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"pgregory.net/rapid"
)

func TestEffective(t *testing.T) {
	for _, c := range []struct {
		setting control.Window
		limit   Size
		want    Size
		ok      bool
	}{
		{0, 0, 0, true},
		{0, 128_000, 128_000, true},
		{1, 1, 1, true},
		{8192, 128_000, 8192, true},
		{128_000, 128_000, 128_000, true},
		{128_001, 128_000, 0, false},
		{8192, 0, 0, false},
		{1<<32 - 1, 1<<32 - 1, 1<<32 - 1, true},
	} {
		got, err := Effective(c.setting, c.limit)
		if got != c.want || (err == nil) != c.ok || err != nil && errdefs.KindOf(err) != errdefs.Invalid {
			t.Errorf("window %s, limit %d: %d, %v", c.setting, c.limit, got, err)
		}
	}
}

func TestArithmetic(t *testing.T) {
	for _, c := range []struct {
		size                  Size
		reserve, chars, input int64
		skills                int
	}{
		{0, 0, 0, 0, libctx.MaxSkillText},
		{1, 1, 4, 0, 0},
		{2, 1, 8, 4, 0},
		{4, 1, 16, 12, 0},
		{7, 1, 28, 24, 0},
		{8, 2, 32, 24, 0},
		{4096, 1024, 16384, 12288, 327},
		{16_383, 4095, 65_532, 49_152, 1310},
		{16_384, 4096, 65_536, 49_152, 1310},
		{128_000, 4096, 512_000, 495_616, 10_240},
		{1<<32 - 1, 4096, 17_179_869_180, libctx.MaxPrompt, 343_597_383},
	} {
		z := c.size
		if z.Reserve() != c.reserve || z.Chars() != c.chars || z.InputChars() != c.input || z.SkillChars() != c.skills {
			t.Errorf("%d: reserve %d, chars %d, input %d, skills %d", z, z.Reserve(), z.Chars(), z.InputChars(), z.SkillChars())
		}
	}
}

func TestUnknown(t *testing.T) {
	z := Size(0)
	if z.Known() || z.Env() != nil || z.RuleChars() != libctx.MaxRuleText || z.ToolChars() != libctx.MaxContextText {
		t.Error("an unknown window claims something")
	}
	if n := z.PromptBytes(1000); n != 1000+libctx.HistoryBytes {
		t.Errorf("%d bytes", n)
	}
	if n := z.PromptBytes(1<<63 - 1); n != libctx.MaxPrompt {
		t.Errorf("%d bytes for a system message without end", n)
	}
}

func TestEnv(t *testing.T) {
	want := []string{"CTX_CONTEXT_WINDOW_TOKENS=8192", "CTX_CONTEXT_WINDOW_CHARS=32768"}
	if got := Size(8192).Env(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := Size(rapid.Uint32().Draw(t, "limit"))
		setting := control.Window(rapid.Uint32().Draw(t, "setting"))
		z, err := Effective(setting, limit)
		if err == nil && z > limit {
			t.Fatalf("%d is over the limit", z)
		}
		if err == nil && setting != 0 && control.Window(z) != setting {
			t.Fatalf("%s became %d", setting, z)
		}
		z = limit
		if !z.Known() {
			return
		}
		in := z.InputChars()
		if in < 0 || in > libctx.MaxPrompt || in > z.Chars() || z.Reserve() < 1 || z.Reserve() > int64(z) {
			t.Fatalf("%d tokens: input %d of %d, reserve %d", z, in, z.Chars(), z.Reserve())
		}
		if z.PromptBytes(rapid.Int64Min(0).Draw(t, "system")) != in {
			t.Fatal("a known window bounds the whole array")
		}
		if int64(z.SkillChars())*50 > z.Chars() || int64(z.RuleChars())*4 > in || int64(z.ToolChars())*8 > in {
			t.Fatal("a share is too large")
		}
		// What the host says it means is what programs read.
		if env := z.Env(); env[0] != "CTX_CONTEXT_WINDOW_TOKENS="+strconv.FormatInt(int64(z), 10) {
			t.Fatal(env)
		}
	})
}
