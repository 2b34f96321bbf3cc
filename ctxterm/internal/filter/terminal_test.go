package filter

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// terminal is a reader of output as some terminal is, written from the other
// side and without regard to the filter: it notes what it would answer or copy.
// Terminals differ in what they take for a control; the fields say how.
type terminal struct {
	rawC1  bool // single bytes 0x80 to 0x9F are controls
	wideC1 bool // U+0080 to U+009F are controls
	eight  bool // letters up to U+00FF in sequences count as ASCII
	aborts bool // other letters end a sequence, otherwise they are passed over
	wraps  int  // numbers are taken modulo this
	// outer is the terminal around this one, if this one is GNU screen (which
	// passes on what a DCS holds) or tmux (only what is marked).
	outer  *terminal
	marked bool

	state   string // "", esc, csi, osc, dcs, str
	text    []byte // what the sequence holds so far
	escaped bool   // ESC came in a string of screen or tmux
	found   []string
}

func (t *terminal) note(format string, args ...any) {
	t.found = append(t.found, fmt.Sprintf(format, args...))
}

// all is what this terminal and those around it noted.
func (t *terminal) all() []string {
	if t == nil {
		return nil
	}
	return append(t.found, t.outer.all()...)
}

func (t *terminal) feed(b []byte) {
	for len(b) > 0 {
		if t.outer != nil && t.state == "dcs" {
			t.passthrough(b[0])
			b = b[1:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		for r == utf8.RuneError && n < len(b) && !utf8.FullRune(b[:n+1]) {
			n++ // the beginning of a letter without its end counts as one
		}
		switch {
		case b[0] < 0x80:
			t.ascii(b[0])
		case r == utf8.RuneError && n == 1 && b[0] < 0xA0 && t.rawC1:
			t.c1(b[0])
		case r < 0xA0 && n == 2 && t.wideC1:
			t.c1(byte(r))
		case r < 0x100 && n == 2 && r >= 0xA0 && t.eight && t.state != "" && t.state != "osc" && t.state != "dcs" && t.state != "str":
			t.ascii(byte(r) & 0x7F)
		default:
			t.letter(b[:n])
		}
		b = b[n:]
	}
}

func (t *terminal) letter(raw []byte) {
	switch t.state {
	case "esc", "csi":
		if t.aborts {
			t.state = ""
		}
	case "osc", "dcs", "str":
		t.text = append(t.text, raw...)
	}
}

func (t *terminal) c1(b byte) {
	t.end()
	switch b {
	case 0x9A:
		t.note("DECID")
	case 0x90, 0x98, 0x9B, 0x9D, 0x9E, 0x9F:
		t.begin(b - 0x40)
	}
}

func (t *terminal) begin(letter byte) {
	t.text = nil
	t.state = map[byte]string{'P': "dcs", '[': "csi", ']': "osc", 'X': "str", '^': "str", '_': "str"}[letter]
	if letter == '_' {
		t.text = []byte("_")
	}
}

func (t *terminal) ascii(b byte) {
	switch {
	case b == 0x1B:
		t.end()
		t.state, t.text = "esc", nil
	case b == 0x18 || b == 0x1A:
		t.end()
	case b == 7 && t.state == "osc":
		t.end()
	case b == 5:
		t.note("ENQ")
	case b < 0x20 || b == 0x7F:
	case t.state == "esc" && b < 0x30:
		t.text = append(t.text, b)
	case t.state == "esc":
		t.state = ""
		switch {
		case len(t.text) > 0:
		case b == 'Z':
			t.note("DECID")
		default:
			t.begin(b)
		}
	case t.state == "csi" && b < 0x40:
		t.text = append(t.text, b)
	case t.state == "csi":
		t.state = ""
		t.control(string(t.text), b)
	case t.state != "":
		t.text = append(t.text, b)
	}
}

// passthrough reads a DCS as screen and tmux do, up to ESC \ and nothing else.
func (t *terminal) passthrough(b byte) {
	switch {
	case t.escaped && b == '\\':
		t.state, t.escaped = "", false
		if rest, ok := strings.CutPrefix(string(t.text), "tmux;"); ok && t.marked {
			t.outer.feed([]byte(rest))
		} else if !t.marked {
			t.outer.feed(t.text)
		}
	case t.escaped:
		t.escaped = false
		if !t.marked {
			t.text = append(t.text, 0x1B)
		}
		if !t.marked && b == 0x1B {
			t.escaped = true
			return
		}
		t.text = append(t.text, b)
	case b == 0x1B:
		t.escaped = true
	default:
		t.text = append(t.text, b)
	}
}

func (t *terminal) number(s string) (n int, rest string, digits bool) {
	s = strings.TrimLeft(s, " +")
	i := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if i < 0 {
		i = len(s)
	}
	n, err := strconv.Atoi(s[:i])
	if err == nil && t.wraps > 0 {
		n %= t.wraps
	}
	return n, s[i:], i > 0
}

func (t *terminal) control(params string, final byte) {
	whole := params + string(rune(final))
	n, _, _ := t.number(params)
	marker := ""
	if params != "" && strings.Contains("<=>?", params[:1]) {
		marker = params[:1]
	}
	plain := strings.Trim(params, "0123456789;:") == ""
	marked := marker != "" && strings.Trim(params[1:], "0123456789;:") == ""
	ends := func(s string) bool { return strings.HasSuffix(whole, s) }
	switch {
	case plain && strings.ContainsRune("cnx", rune(final)),
		plain && final == 't' && slices.Contains([]int{11, 13, 14, 15, 16, 18, 19, 20, 21}, n),
		marked && final == 'c' && strings.Contains(">=", marker),
		marked && final == 'q' && marker == ">",
		marked && marker == "?" && strings.ContainsRune("nuSmg", rune(final)),
		ends("$p"), ends("$w"), ends("$u"), ends("&u"), ends(",u"), ends("*y"), ends(`"v`),
		ends("#R"), ends("#S"), ends("#|"), ends("'|"):
		t.note("CSI %s", whole)
	case marked && marker == "?" && final == 'h':
		for _, mode := range strings.Split(params[1:], ";") {
			if n, _, _ := t.number(mode); n == 2048 {
				t.note("CSI %s", whole)
			}
		}
	}
}

// end is where a string ends, however it does.
func (t *terminal) end() {
	text, state := string(t.text), t.state
	t.state, t.text = "", nil
	switch state {
	case "osc":
		t.osc(text)
	case "dcs":
		for _, query := range []string{"$q", "+q", "@kitty-cmd"} {
			if i := strings.Index(text, query); i >= 0 && strings.Trim(text[:i], "0123456789;:<=>?") == "" {
				t.note("DCS %q", text)
			}
		}
	case "str":
		keys, ok := strings.CutPrefix(text, "_G")
		if !ok {
			return
		}
		keys, _, _ = strings.Cut(keys, ";")
		pairs := strings.Split(keys, ",")
		if !slices.Contains(pairs, "q=2") || slices.Contains(pairs, "a=q") {
			t.note("APC %q", text)
		}
	}
}

func (t *terminal) osc(text string) {
	n, rest, ok := t.number(text)
	if !ok {
		return
	}
	parts := strings.Split(rest, ";")[1:]
	asks := slices.ContainsFunc(parts, func(s string) bool { return strings.HasPrefix(s, "?") })
	switch {
	case n == 52, n == 60, n == 61, n == 5113, n == 5522:
		t.note("OSC %q", text)
	case slices.Contains([]int{4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22, 50, 702}, n) && asks:
		t.note("OSC %q", text)
	case n == 21 && strings.Contains(rest, "=?"):
		t.note("OSC %q", text)
	case n == 1337 && (strings.HasPrefix(rest, ";Report") || strings.HasPrefix(rest, ";Copy") || strings.HasPrefix(rest, ";Capabilities")):
		t.note("OSC %q", text)
	}
}

// terminals are one of each kind.
func terminals() map[string]*terminal {
	return map[string]*terminal{
		"seven bits":        {},
		"aborting":          {aborts: true, wraps: 1 << 16},
		"C1 in UTF-8":       {wideC1: true, aborts: true},
		"C1 raw":            {rawC1: true, wideC1: true, wraps: 1 << 32},
		"eight bits":        {wideC1: true, eight: true, aborts: true},
		"screen":            {outer: &terminal{}},
		"screen in another": {wideC1: true, outer: &terminal{wideC1: true, eight: true}},
		"tmux":              {marked: true, outer: &terminal{wideC1: true}},
		"tmux in tmux":      {marked: true, outer: &terminal{marked: true, outer: &terminal{}}},
	}
}
