package screen

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/termwire"
	"github.com/charmbracelet/x/vt"
)

// recorded are the outputs of real programs on a terminal of 80 columns and 24
// rows, without their queries.
var recorded = []string{"bash", "colours", "htop", "less", "tmux", "vim"}

func play(t *testing.T, name string) (*Screen, []byte) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	s := New(termwire.DefaultSize, Options{Reply: func(b []byte) { t.Errorf("a query in %s: %q", name, b) }})
	s.Write(b)
	return s, b
}

// basic are the attributes that every terminal knows.
const basic = bold | faint | italic | inverse | strike | underline

// look is what is compared with others of a cell.
func look(s *Screen, x, y int) (string, style) {
	c := s.grid.rows[y].at(x)
	if c.attr&spacer != 0 {
		return "", style{}
	}
	return string(c.r) + s.marks.texts[c.mark], style{fg: c.fg, bg: c.bg, attr: c.attr & basic}
}

// styleOf is the style that a sequence sets.
func styleOf(sgr string) style {
	s := New(termwire.DefaultSize, Options{})
	s.Write([]byte(sgr))
	return style{fg: s.cur.pen.fg, bg: s.cur.pen.bg, attr: s.cur.pen.attr & basic}
}

func TestProgramsAsVT(t *testing.T) {
	for _, name := range recorded {
		t.Run(name, func(t *testing.T) {
			s, b := play(t, name)
			e := vt.NewEmulator(s.cols, s.rows)
			if _, err := e.Write(b); err != nil {
				t.Fatal(err)
			}
			for y := range s.rows {
				for x := range s.cols {
					text, st := look(s, x, y)
					c := e.CellAt(x, y)
					if other := styleOf(c.Style.String()); c.Content != text || c.Content != "" && other != st {
						t.Errorf("column %d, row %d: %q %v, vt has %q %v", x, y, text, st, c.Content, other)
					}
				}
			}
			if at := e.CursorPosition(); at.X != s.cur.x || at.Y != s.cur.y {
				t.Errorf("cursor at %d, %d; vt has it at %d, %d", s.cur.x, s.cur.y, at.X, at.Y)
			}
		})
	}
}

// What tmux shows of the same output is what is here, cell by cell, and so is
// what it shows of a redraw, whatever came before.
func TestProgramsAsTmux(t *testing.T) {
	for _, name := range recorded {
		t.Run(name, func(t *testing.T) {
			s, output := play(t, name)
			sameInTmux(t, s, output)
			mess := "\x1b[?1049h\x1b[3;9r\x1b[?6h\x1b(0\x1b[4h\x1b[?7l\x1b[31;44mmess\x1b[2J\x1b]2;unfinished"
			sameInTmux(t, s, append([]byte(mess), s.Redraw(termwire.Size{})...))
		})
	}
}

func sameInTmux(t *testing.T, s *Screen, output []byte) {
	t.Helper()
	picture, state := tmuxDraws(t, output)
	other := New(s.Size(), Options{})
	for y, line := range strings.Split(strings.TrimSuffix(picture, "\n"), "\n") {
		other.Write(fmt.Appendf(nil, "\x1b[%dH%s", y+1, line))
		told := other.cur.x
		if other.cur.wrap {
			told = s.cols
		}
		for x := range s.cols {
			text, st := look(s, x, y)
			theirs, style := look(other, x, y)
			if x >= told {
				st, style = styleOf(""), styleOf("") // tmux does not tell the colour of what was erased
			}
			if text != theirs || st != style {
				t.Errorf("column %d, row %d: %q %v, tmux has %q %v", x, y, text, st, theirs, style)
			}
		}
	}
	alternate := 0
	if s.Alternate() {
		alternate = 1
	}
	if ours := fmt.Sprintf("%d %d %d", s.cur.x, s.cur.y, alternate); ours != state {
		t.Errorf("cursor and alternate screen %s, of tmux %s", ours, state)
	}
}

// tmuxDraws is what tmux shows of an output, and its cursor.
func tmuxDraws(t *testing.T, output []byte) (picture, state string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "screen") // short, for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, config, file := filepath.Join(dir, "s"), filepath.Join(dir, "c"), filepath.Join(dir, "output")
	if err := os.WriteFile(file, output, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("set -g status off\nset -g default-terminal tmux-256color\nset -g set-titles off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tmux := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("tmux", append([]string{"-u", "-S", socket, "-f", config}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + dir, "SHELL=/bin/sh"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %s: %v: %s", args[0], err, out)
		}
		return string(out)
	}
	// The answer to a query comes when everything before it is drawn.
	draw := fmt.Sprintf(`stty raw -echo; cat %q; printf '\033[5n'; head -c 4 >/dev/null; tmux -S %q wait-for -S drawn; exec cat`, file, socket)
	tmux("new-session", "-d", "-x", "80", "-y", "24", draw)
	t.Cleanup(func() { tmux("kill-server") })
	tmux("wait-for", "drawn")
	picture = tmux("capture-pane", "-p", "-e", "-N")
	return picture, strings.TrimSpace(tmux("display-message", "-p", "#{cursor_x} #{cursor_y} #{alternate_on}"))
}
