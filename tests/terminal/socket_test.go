package terminal

import (
	"encoding/base64"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
)

const (
	watching  = `{"op":"watch","cols":80,"rows":24}`
	attaching = `{"op":"attach","cols":80,"rows":24}`
)

func typing(keys string) string {
	return `{"op":"input","data_b64":"` + base64.StdEncoding.EncodeToString([]byte(keys)) + `"}`
}

// refused reads up to an error, which has to be the last word, and returns its code.
func refused(t *testing.T, c *world.Conn) (code string) {
	t.Helper()
	code = world.Last(c.Until("error")).Str("code")
	if f := c.Next(); f != nil {
		t.Errorf("after %s: %v", code, f)
	}
	return code
}

// TestByHand: what a client may not say, by a socket of our own; nobody else notices.
func TestByHand(t *testing.T) {
	t.Parallel()
	l := newOwn(t)
	r := l.start(t, "default")
	s := r.join(80, 24)
	dial := func(lines ...string) *world.Conn {
		c := l.DialPath(r.socket)
		for _, line := range lines {
			c.Send(line)
		}
		return c
	}

	// Silent ones are waited for, together.
	silent, half := dial(), l.DialPath(r.socket)
	if _, err := half.Write([]byte(`{"op":"att`)); err != nil {
		t.Fatal(err)
	}

	for name, lines := range map[string][]string{
		"a watcher types":               {watching, typing("never\r")},
		"a pipe types":                  {`{"op":"watch"}`, typing("never\r")},
		"a watcher resizes":             {watching, `{"op":"resize","cols":10,"rows":10}`},
		"a watcher signals":             {watching, `{"op":"signal","name":"KILL"}`},
		"a watcher emits":               {watching, `{"op":"output","data_b64":"aGVsbG8NCg=="}`},
		"a watcher attaches":            {watching, attaching},
		"a watcher says it is attached": {`{"op":"watch","cols":80,"rows":24,"mode":"attach","uid":0}`, typing("never\r")},
		"an emitter types":              {`{"op":"emit"}`, typing("never\r")},
	} {
		if code := refused(t, dial(lines...)); code != "EACCES" {
			t.Errorf("%s: %s", name, code)
		}
	}
	for name, first := range map[string]string{
		"no size": `{"op":"attach"}`, "size 0": `{"op":"attach","cols":0,"rows":0}`, "size 65535": `{"op":"attach","cols":65535,"rows":65535}`,
		"garbage": "\x00\xff{}", "another operation": typing("never\r"), "nothing": "",
	} {
		if code := refused(t, dial(first)); code != "EINVAL" {
			t.Errorf("first %s: %s", name, code)
		}
	}

	// An attached client is told, and goes on.
	c := dial(attaching)
	for _, line := range []string{
		`{"op":"resize","cols":0,"rows":0}`, `{"op":"resize","cols":65535,"rows":65535}`, `{"op":"resize","cols":-1,"rows":24}`,
		`{"op":"input","data_b64":"=== no ==="}`, `{"op":"input","data_b64":"bHM"}`, `{"op":"input"}`, `{"op":"signal","name":"STOP"}`, `{`,
		`{"op":"output","data_b64":"aGVsbG8NCg=="}`,
	} {
		c.Send(line)
		if f := world.Last(c.Until("error")); f.Str("code") != "EINVAL" && f.Str("code") != "EACCES" {
			t.Errorf("%s: %v", line, f)
		}
	}
	c.Close()

	// One that stops in the middle of a line holds nobody up.
	stops := dial(attaching)
	if _, err := stops.Write([]byte(`{"op":"inp`)); err != nil {
		t.Fatal(err)
	}
	s.Type("bash -c 'echo $(stty size)'" + enter)
	s.See("\n24 80\n")
	if _, err := stops.Write([]byte(strings.TrimPrefix(typing("echo "), `{"op":"inp`) + "\n")); err != nil {
		t.Fatal(err)
	}
	s.Last(prompt + " echo")
	s.Type(ctrlC)
	s.Last(prompt)

	long := dial(attaching)
	long.Until("screen")
	go func() { // which ends when it is refused
		_, _ = long.Write([]byte(`{"op":"input","data_b64":"` + strings.Repeat("AAAA", 512<<10) + "\"}\n"))
	}()
	if code := world.Last(long.Until("error")).Str("code"); code != "EMSGSIZE" {
		t.Errorf("2 MiB in a line: %s", code)
	}

	for name, c := range map[string]*world.Conn{"silent": silent, "half a line": half} {
		f := c.Next()
		if f == nil || f.Str("code") != "ETIMEDOUT" || c.Next() != nil {
			t.Errorf("%s: %v", name, f)
		}
	}
	s.Type("status" + enter)
	s.See("status\n0\n" + prompt)
	if strings.Contains(s.Text(), "never") {
		t.Errorf("%s", s.Text())
	}
	detach(t, s)
}
