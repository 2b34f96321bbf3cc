package child

import (
	"io"
	"os"
	"testing"
)

// TestStart: a program gets its descriptor 3, an empty standard input, and only
// the environment it was given.
func TestStart(t *testing.T) {
	t.Setenv("SECRET_KEY", "hunter2")
	s := NewStarter()
	defer s.Close()
	for _, env := range [][]string{nil, {"A=b"}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Start(Program{
			Argv: []string{"/bin/sh", "-c", `cat; tr '\0' ';' < /proc/$$/environ >&3`}, Env: env, File: w,
		})
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		for _, e := range env {
			want += e + ";"
		}
		if string(got) != want {
			t.Errorf("environment %q, want %q", got, want)
		}
		if st, err := p.Wait(); err != nil || !st.Success() {
			t.Errorf("%v %v", st, err)
		}
		r.Close()
	}
	if _, err := s.Start(Program{Argv: []string{"/nowhere"}, File: os.Stderr}); err == nil {
		t.Error("what is not there was started")
	}
}
