package terminal

import (
	"bytes"
	"crypto/sha256"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/tests/internal/screen"
)

// reader is ctx agent watch into a pipe.
type reader struct {
	cmd  *exec.Cmd
	over chan struct{}
	errs bytes.Buffer

	mu  sync.Mutex
	got bytes.Buffer
}

// Write takes what it prints.
func (r *reader) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.Write(b)
}

func (r *reader) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

// pipe starts one.
func (r *room) pipe(flags ...string) *reader {
	r.t.Helper()
	p := &reader{over: make(chan struct{})}
	p.cmd = r.Command("ctx", append([]string{"agent", "watch", "--session", r.session, "coder"}, flags...)...)
	out, err := p.cmd.StdoutPipe()
	must(r.t, err)
	p.cmd.Stderr = &p.errs
	must(r.t, p.cmd.Start())
	go func() {
		defer close(p.over)
		_, _ = io.Copy(p, out) // what arrived is looked at
		_ = p.cmd.Wait()
	}()
	r.t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.over })
	return p
}

// connected types into the terminal until all readers have got some of it.
func connected(s *screen.Screen, all ...*reader) {
	for _, p := range all {
		for p.text() == "" {
			before := len(s.Raw())
			s.Type("x\x7f")
			s.WroteAfter(before, "x")
		}
	}
}

// everyByte is all values, and what terminals act on, that no client may be
// spared; what begins a question or a string is among it without being one.
func everyByte() []byte {
	var b bytes.Buffer
	b.WriteString("BEGIN\x1b[31;4mred\x1b[m\x1b]2;a title\a\x1b[?25l\x1b[?25h\xf0\x9f\x99\x82\x1b(0q\x1b(B")
	for range 40 {
		for i := range 256 {
			switch i {
			case 0x05, 0x9a: // ask who is there
			case 0x1b:
				b.WriteString("\x1b[m")
			case 0x90, 0x98, 0x9b, 0x9d, 0x9e, 0x9f: // begin a sequence; as the end of a character they do not
				b.Write([]byte{0xc4, byte(i)})
			default:
				b.WriteByte(byte(i))
			}
			b.WriteString(" ")
		}
	}
	b.WriteString("END")
	return b.Bytes()
}

// TestPipe: into a pipe goes what the program writes, byte for byte, until it ends.
func TestPipe(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	r := l.start(t, "default")
	want := everyByte()
	l.Write(l.Workspace+"/bytes", string(want))
	l.Write(l.Workspace+"/filtered", strings.Replace(string(want), "red", "r\x1b[6n\x1b[c\x05\x1b]52;c;aGVsbG8=\x1b\\\x1bP+q544e\x1b\\ed", 1))
	s := r.join(80, 24)
	one, two := r.pipe(), r.pipe()
	connected(s, one, two)
	s.Type(l.script("print.sh", `stty -opost -echo -icanon; cat bytes; printf between; cat filtered; read -rd '\' answers; stty sane`) + enter)
	s.Wrote("END")
	ready(s)
	s.Type("exit 4" + enter)
	if code := s.Exit(); code != 4 {
		t.Errorf("exit code %d", code)
	}
	for _, p := range []*reader{one, two} {
		<-p.over
		if code := p.cmd.ProcessState.ExitCode(); code != 0 || p.errs.String() != "[coder/default ended: exit code 4]\n" {
			t.Errorf("exit code %d, %q", code, &p.errs)
		}
		got := p.text()
		from, to := strings.Index(got, "BEGIN"), strings.LastIndex(got, "END")
		if from < 0 || to < from {
			t.Fatalf("%.500q", got)
		}
		first, second, _ := strings.Cut(got[from:to+3], "between")
		for _, part := range []string{first, second} {
			if sha256.Sum256([]byte(part)) != sha256.Sum256(want) {
				t.Errorf("not the bytes of the program: %s", differ(part, string(want)))
			}
		}
	}
}

// differ is where two texts begin to.
func differ(got, want string) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	at := func(s string) string { return s[max(0, min(i-10, len(s))):min(len(s), i+30)] }
	return strings.Join([]string{quote(at(got)), "for", quote(at(want))}, " ")
}

// TestClosedPipe: who has read enough goes without a word.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	r := newLab(t).start(t, "default")
	s := r.join(80, 24)
	for _, script := range []string{`"$CTX" agent watch coder | head -1 >/dev/null; echo "${PIPESTATUS[*]}"`, `"$CTX" agent watch coder | head -c 1 >/dev/null; echo "${PIPESTATUS[*]}"`} {
		cmd := r.Command("ctx")
		cmd.Args = []string{"bash", "-c", script}
		cmd.Env = append(cmd.Env, "CTX="+cmd.Path)
		cmd.Path = "/bin/bash"
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		must(t, cmd.Start())
		over := make(chan error, 1)
		go func() { over <- cmd.Wait() }()
		for ended := false; !ended; {
			before := len(s.Raw())
			s.Type("status" + enter)
			s.WroteAfter(before, "tsh>")
			select {
			case err := <-over:
				must(t, err)
				ended = true
			default:
			}
		}
		if out.String() != "141 0\n" || errs.Len() > 0 {
			t.Errorf("%q, %q", &out, &errs)
		}
	}
	detach(t, s)
}
