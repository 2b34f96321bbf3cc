package terminal

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/screen"
	"golang.org/x/sys/unix"
)

func quote(s string) string { return strconv.Quote(s) }

// asking asks the terminal when the gate opens, and then shows all that it is
// answered and typed, until an exclamation mark.
const asking = `stty raw -echo
printf '\033[2J\033[3;5Hasking'
read -r x <gate
printf '\033[6n\033[c\033]11;?\033\\\033[>c\033[5n\033[>q\033]52;c;aGVsbG8=\a\033]52;c;?\a\005\033[21tasked'
: >asked
got=
while IFS= read -rN1 c && [ "$c" != '!' ]; do got+=$c; done
stty sane
printf '\nanswers %q.\n' "$got"
`

// Where the cursor is, what the terminal is, its background, its version, that it
// is well, its name.
var answers = regexp.MustCompile(`answers \$'\\E\[3;11R\\E\[\?[0-9;]+c\\E\]11;rgb:[0-9a-f/]+\\E\\\\\\E\[>[0-9;]+c\\E\[0n\\EP>\|[^\\]*\\E\\\\(\\E\]l\\E\\\\)?(\.*)'\.`)

// TestQueries: what a program asks its terminal is answered once, however many look
// on, and none of them is asked. What watchers type goes nowhere.
func TestQueries(t *testing.T) {
	for name, c := range map[string]struct{ attached, watching int }{
		"nobody": {0, 0}, "one": {1, 0}, "three": {2, 1}, "watchers": {0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			must(t, unix.Mkfifo(l.Workspace+"/gate", 0o666))
			must(t, os.Chmod(l.Workspace+"/gate", 0o666))
			r := l.start(t, "default")
			s := r.join(200, 24)
			s.Type(l.script("ask.sh", asking) + enter)
			s.See("asking")
			var all []*screen.Screen
			for range c.attached {
				all = append(all, r.attach(200, 24))
			}
			for range c.watching {
				w := r.client("watch", 200, 24)
				w.See("asking")
				all = append(all, w)
			}
			detach(t, s)
			must(t, os.WriteFile(l.Workspace+"/gate", []byte("\n"), 0))
			l.AwaitExists(l.Workspace + "/asked")
			for _, s := range all {
				s.See("asked")
				s.Type(".")
			}
			for _, s := range all {
				s.Type(leave)
				s.Exit()
				raw := s.Raw()
				for _, question := range []string{"\x1b[6n", "\x1b[c", "]11;?", "\x1b[>c", "\x1b[5n", "\x1b[>q", "]52;", "\x05", "\x1b[21t"} {
					if strings.Contains(raw, question) {
						t.Errorf("a client is asked %q", question)
					}
				}
			}
			s = r.attach(200, 24)
			s.Type("!")
			s.See("answers ")
			ready(s)
			found := answers.FindStringSubmatch(s.Text())
			if found == nil || len(found[2]) != c.attached {
				t.Errorf("%s", s.Text())
			}
			detach(t, s)
		})
	}
}
