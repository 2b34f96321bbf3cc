package settings

import (
	"errors"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/linefile"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	standard := Default()
	for text, want := range map[string]Config{
		"":                              standard,
		"\n# only remarks\n":            standard,
		"max_loaded_tools=1\n":          {1, 32, 1},
		"max_loaded_tools=1024":         {1024, 32, 1},
		"cache_capacity=7\n\n#\n":       {64, 7, 1},
		"window_percent=100\n":          {64, 32, 100},
		"window_percent=2\n# \n#x=1\n":  {64, 32, 2},
		string(standard.Text()):         standard,
		"cache_capacity=1\n#max_load=0": {64, 1, 1},
	} {
		if got, err := Parse([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, line := range map[string]int{
		"max_loaded_tools=0\n":                         1,
		"max_loaded_tools=1025\n":                      1,
		"max_loaded_tools=\n":                          1,
		"max_loaded_tools=01\n":                        1,
		"max_loaded_tools=+1\n":                        1,
		"max_loaded_tools = 1\n":                       1,
		"max_loaded_tools=1 # remark\n":                1,
		"max_loaded_tools=1\nmax_loaded_tools=1\n":     2,
		"# fine\n\nwindow_percent=101\n":               3,
		"cache_capacity=1025\n":                        1,
		"cache_capacity=99999999999999999999\n":        1,
		"\nunknown=1\n":                                2,
		" max_loaded_tools=1\n":                        1,
		"max_loaded_tools\n":                           1,
		"MAX_LOADED_TOOLS=1\n":                         1,
		"window_percent=5\ncache_capacity=3\n=3\n#\n=": 3,
	} {
		var e *linefile.Error
		_, err := Parse([]byte(text))
		if !errors.As(err, &e) || e.Line != line || e.File != "config" || !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{
			rapid.IntRange(1, 1024).Draw(t, "max"), rapid.IntRange(1, 1024).Draw(t, "cache"), rapid.IntRange(1, 100).Draw(t, "window"),
		}
		if got, err := Parse(c.Text()); err != nil || got != c {
			t.Fatalf("%+v came back as %+v, %v", c, got, err)
		}
	})
}

// A change touches one line and nothing else.
func TestChange(t *testing.T) {
	for _, c := range []struct {
		text  string
		key   string
		value int
		want  string // "": refused
	}{
		{"", "max_loaded_tools", 3, "max_loaded_tools=3\n"},
		{"# a\n\nmax_loaded_tools=1\n# b", "max_loaded_tools", 3, "# a\n\nmax_loaded_tools=3\n# b\n"},
		{"#max_loaded_tools=1\n", "window_percent", 100, "#max_loaded_tools=1\nwindow_percent=100\n"},
		{"", "max_loaded_tools", 0, ""},
		{"", "window_percent", 101, ""},
		{"", "speed", 1, ""},
		{"speed=1\n", "max_loaded_tools", 1, ""},
	} {
		got, err := Change([]byte(c.text), c.key, c.value)
		if string(got) != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q %s=%d: %q, %v", c.text, c.key, c.value, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "max_loaded_tools=3\n", "# x\n\ncache_capacity=1", "window_percent=101\n", "a=b\n", "\xff", "=\n", "max_loaded_tools=1\nmax_loaded_tools=1\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil {
			if c != Default() || !errdefs.Is(err, errdefs.Invalid) {
				t.Fatalf("%+v, %v", c, err)
			}
			return
		}
		if again, err := Parse(c.Text()); err != nil || again != c {
			t.Fatalf("%+v, %v", again, err)
		}
	})
}
