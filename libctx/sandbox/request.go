package sandbox

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
)

// Request is the one thing an entry step is asked for: to become this payload.
// With its first byte come the payload's three standard descriptors, and behind
// them those it gets besides. The end of the channel in its place means that
// nobody wants a payload any more.
type Request struct {
	Passed int      // descriptors besides the three, 3, 4, … of the payload; at most libctx.MaxSandboxPassed
	Expect []Expect // what must be found first
	Cwd    string   // inside path
	Env    []string // complete, KEY=VALUE
	Argv   []string // Argv[0] an absolute path
}

// RequestOf is the request for the payload of a spec.
func RequestOf(s Spec) Request {
	w := s.Workspace
	r := Request{Cwd: s.Cwd, Env: s.Env, Argv: s.Argv}
	if r.Cwd == "" {
		r.Cwd = "/"
	}
	if w.Dir != "" {
		if s.Cwd == "" {
			r.Cwd = paths.InWorkspace
		}
		r.Expect = append(r.Expect, Expect{Path: paths.InWorkspace, Dev: w.Dev, Ino: w.Ino, ReadOnly: w.Frozen})
	}
	for _, b := range readOnly(s) {
		r.Expect = append(r.Expect, Expect{Path: b.Target, Dev: b.Dev, Ino: b.Ino, ReadOnly: true})
	}
	r.Expect = append(r.Expect, s.Expect...)
	return r
}

// A request on the channel is a head and a body. The head is the token and the
// length of the body; the body is words that each end with NUL.
const (
	// RequestHead is the length of the head in bytes.
	RequestHead = 5
	// token keeps an entry step from taking anything else for a request.
	token = 'T'
)

// Encode writes the request as it goes over the channel: errdefs.Invalid for
// what no program can be given, errdefs.TooBig over libctx.MaxSandboxRequest.
func (r Request) Encode() ([]byte, error) {
	b := make([]byte, RequestHead, 1<<10)
	b[0] = token
	nul := false
	add := func(words ...string) {
		for _, w := range words {
			nul = nul || strings.IndexByte(w, 0) >= 0
			b = append(b, w...)
		}
		b = append(b, 0)
	}
	add("cwd=", r.Cwd)
	if r.Passed != 0 {
		add("passed=", strconv.Itoa(r.Passed))
	}
	for _, x := range r.Expect {
		name := "expect="
		if x.ReadOnly {
			name = "read-only="
		}
		add(name, fmt.Sprintf("%d:%d:", x.Dev, x.Ino), x.Path)
	}
	for _, kv := range r.Env {
		add("env=", kv)
	}
	add("run")
	for _, word := range r.Argv {
		add(word)
	}
	size := len(b) - RequestHead
	switch {
	case r.Passed < 0 || r.Passed > libctx.MaxSandboxPassed:
		return nil, errdefs.New(errdefs.Invalid, "sandbox: %d descriptors for the payload, not 0 to %d", r.Passed, libctx.MaxSandboxPassed)
	case nul:
		return nil, errdefs.New(errdefs.Invalid, "sandbox: a word or a variable of the payload holds a NUL")
	case size > libctx.MaxSandboxRequest:
		return nil, errdefs.New(errdefs.TooBig, "sandbox: arguments and environment have more than %d bytes", libctx.MaxSandboxRequest)
	}
	binary.BigEndian.PutUint32(b[1:], uint32(size))
	return b, nil
}

// ParseHead is the length of the body that follows a head; a head that is none
// is errdefs.Protocol.
func ParseHead(head []byte) (int, error) {
	if len(head) != RequestHead || head[0] != token {
		return 0, errdefs.New(errdefs.Protocol, "entry step: no request begins with %.20q", head)
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n == 0 || n > libctx.MaxSandboxRequest {
		return 0, errdefs.New(errdefs.Protocol, "entry step: a request of %d bytes", n)
	}
	return int(n), nil
}

// ParseRequest reads the body of a request, as Encode writes it. Everything else
// is errdefs.Protocol.
func ParseRequest(body []byte) (Request, error) {
	var r Request
	text, ended := strings.CutSuffix(string(body), "\x00")
	words := strings.Split(text, "\x00")
	at := 0
	bad := func(why string) (Request, error) {
		return Request{}, errdefs.New(errdefs.Protocol, "entry step: word %d of the request %s", at+1, why)
	}
	if !ended {
		return bad("has no end")
	}
	var ok bool
	if r.Cwd, ok = strings.CutPrefix(words[0], "cwd="); !ok || !strings.HasPrefix(r.Cwd, "/") {
		return bad("is no start directory")
	}
	at++
	if passed, ok := strings.CutPrefix(words[min(at, len(words)-1)], "passed="); ok {
		var n uint64
		if !number(&n)(passed) || n == 0 || n > libctx.MaxSandboxPassed {
			return bad("is no number of descriptors")
		}
		r.Passed = int(n)
		at++
	}
	for ; at < len(words); at++ {
		name, value, _ := strings.Cut(words[at], "=")
		if name != "expect" && name != "read-only" {
			break
		}
		x := Expect{ReadOnly: name == "read-only"}
		if !parseExpect(value, &x) {
			return bad("is not DEV:INO:PATH")
		}
		r.Expect = append(r.Expect, x)
	}
	for ; at < len(words); at++ {
		kv, ok := strings.CutPrefix(words[at], "env=")
		if !ok {
			break
		}
		if strings.IndexByte(kv, '=') <= 0 {
			return bad("has no name")
		}
		r.Env = append(r.Env, kv)
	}
	if at+1 >= len(words) || words[at] != "run" || !strings.HasPrefix(words[at+1], "/") {
		return bad("is no payload with an absolute path")
	}
	r.Argv = words[at+1:]
	return r, nil
}

func parseExpect(value string, x *Expect) bool {
	f := strings.SplitN(value, ":", 3)
	if len(f) != 3 {
		return false
	}
	x.Path = f[2]
	return number(&x.Dev)(f[0]) && number(&x.Ino)(f[1]) && strings.HasPrefix(x.Path, "/")
}
