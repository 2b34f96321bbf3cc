package sandbox

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Entry{
			Channel: rapid.IntRange(3, 50).Draw(t, "channel"),
			Limits:  Limits{rapid.Uint64().Draw(t, "p"), rapid.Uint64().Draw(t, "o"), rapid.Uint64().Draw(t, "f")},
		}
		got, err := ParseEntry(want.Args())
		if err != nil || got != want {
			t.Fatalf("%v\n%s", err, cmp.Diff(want, got))
		}
	})
}

func TestEntryRefuses(t *testing.T) {
	good := Entry{Channel: 5}.Args()
	for n := range good {
		for _, words := range [][]string{good[:n], slices.Concat(good[:n], good[n+1:]), slices.Insert(slices.Clone(good), n, good[n])} {
			if _, err := ParseEntry(words); !errdefs.Is(err, errdefs.Invalid) {
				t.Errorf("%q: %v", words, err)
			}
		}
	}
	for at, word := range map[int]string{0: "--channel=2", 1: "--processes=-1", 2: "--open-files=01", 3: "--file-bytes="} {
		bad := slices.Clone(good)
		bad[at] = word
		if _, err := ParseEntry(bad); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", word, err)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add(strings.Join(Entry{Channel: 5}.Args(), "\x00"))
	f.Add("--channel=5\x00--")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, "\x00")
		if e, err := ParseEntry(words); err == nil && !slices.Equal(e.Args(), words) {
			t.Errorf("%q parsed as %+v", words, e)
		}
	})
}

func requests() *rapid.Generator[Request] {
	return rapid.Custom(func(t *rapid.T) Request {
		word := rapid.Custom(func(t *rapid.T) string {
			return strings.ReplaceAll(rapid.String().Draw(t, "word"), "\x00", "")
		})
		path := func(name string) string { return "/" + word.Draw(t, name) }
		r := Request{Passed: rapid.IntRange(0, libctx.MaxSandboxPassed).Draw(t, "passed"), Cwd: path("cwd"), Argv: append([]string{path("argv0")}, rapid.SliceOf(word).Draw(t, "argv")...)}
		for range rapid.IntRange(0, 4).Draw(t, "expect") {
			r.Expect = append(r.Expect, Expect{path("at"), rapid.Uint64().Draw(t, "dev"), rapid.Uint64().Draw(t, "ino"), rapid.Bool().Draw(t, "ro")})
		}
		for range rapid.IntRange(0, 4).Draw(t, "env") {
			r.Env = append(r.Env, "K"+word.Draw(t, "name")+"="+word.Draw(t, "value"))
		}
		return r
	})
}

func TestRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := requests().Draw(t, "request")
		b, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		n, err := ParseHead(b[:RequestHead])
		if err != nil || n != len(b)-RequestHead {
			t.Fatalf("%d bytes, %v", n, err)
		}
		got, err := ParseRequest(b[RequestHead:])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\n%s", err, cmp.Diff(want, got))
		}
		// No part of a request is one.
		cut := rapid.IntRange(0, n-1).Draw(t, "cut")
		if r, err := ParseRequest(b[RequestHead:][:cut]); err == nil && len(r.Argv) == len(want.Argv) {
			t.Fatalf("%d bytes of %d are %+v", cut, n, r)
		}
	})
}

func TestRequestRefuses(t *testing.T) {
	for name, r := range map[string]Request{
		"NUL in a word":       {Cwd: "/", Argv: []string{"/x", "a\x00b"}},
		"NUL in a variable":   {Cwd: "/", Env: []string{"A=\x00"}, Argv: []string{"/x"}},
		"NUL in a directory":  {Cwd: "/\x00", Argv: []string{"/x"}},
		"fewer than none":     {Passed: -1, Cwd: "/", Argv: []string{"/x"}},
		"too many passed":     {Passed: libctx.MaxSandboxPassed + 1, Cwd: "/", Argv: []string{"/x"}},
		"NUL in an expection": {Cwd: "/", Expect: []Expect{{Path: "/\x00"}}, Argv: []string{"/x"}},
	} {
		if _, err := r.Encode(); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	big := Request{Cwd: "/", Argv: []string{"/x", strings.Repeat("x", libctx.MaxSandboxRequest)}}
	if _, err := big.Encode(); !errdefs.Is(err, errdefs.TooBig) {
		t.Errorf("too long: %v", err)
	}
	for _, head := range []string{"", "T", "X\x00\x00\x00\x01", "T\x00\x00\x00\x00", "T\xff\xff\xff\xff", "T\x00\x00\x00\x01x"} {
		if _, err := ParseHead([]byte(head)); !errdefs.Is(err, errdefs.Protocol) {
			t.Errorf("head %q: %v", head, err)
		}
	}
	for _, body := range []string{
		"", "\x00", "cwd=/\x00", "cwd=/\x00run\x00", "cwd=x\x00run\x00/x\x00", "cwd=/\x00run\x00x\x00", "cwd=/\x00run\x00/x",
		"run\x00/x\x00", "cwd=/\x00env==b\x00run\x00/x\x00", "cwd=/\x00env=b\x00run\x00/x\x00", "cwd=/\x00expect=1:/x\x00run\x00/x\x00",
		"cwd=/\x00expect=1:2:x\x00run\x00/x\x00", "cwd=/\x00read-only=01:2:/x\x00run\x00/x\x00", "cwd=/\x00env=a=b\x00expect=1:2:/x\x00run\x00/x\x00",
		"cwd=/\x00passed=0\x00run\x00/x\x00", "cwd=/\x00passed=02\x00run\x00/x\x00", "cwd=/\x00passed=9\x00run\x00/x\x00",
		"cwd=/\x00passed=1\x00passed=1\x00run\x00/x\x00", "cwd=/\x00expect=1:2:/\x00passed=1\x00run\x00/x\x00", "cwd=/\x00passed=1\x00",
		"cwd=/\x00what=x\x00run\x00/x\x00", "cwd=/\x00expect\x00run\x00/x\x00",
	} {
		if r, err := ParseRequest([]byte(body)); !errdefs.Is(err, errdefs.Protocol) {
			t.Errorf("body %q: %+v, %v", body, r, err)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, r := range []Request{
		{Cwd: "/", Argv: []string{"/bin/true"}},
		{Passed: 2, Cwd: "/", Argv: []string{"/bin/true", "passed=1"}},
		{Cwd: "/w", Env: []string{"A=b=c", "E="}, Expect: []Expect{{"/workspace", 1, 2, false}, {"/workspace/.git", 1, 3, true}}, Argv: []string{"/x", "", "run"}},
	} {
		b, err := r.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[RequestHead:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseRequest(body)
		if err != nil {
			return
		}
		b, err := r.Encode()
		if err != nil || string(b[RequestHead:]) != string(body) {
			t.Errorf("%q parsed as %+v, written as %q, %v", body, r, b, err)
		}
	})
}

// TestRequestIsApart: what a request carries is in no part of a launch, and what
// a launch is made from is not asked for later.
func TestRequestIsApart(t *testing.T) {
	base := Spec{View: "/v", Workspace: Workspace{Dir: "/w", Dev: 1, Ino: 2}, Argv: []string{"/x"}}
	call := base
	call.Env, call.Cwd, call.Argv, call.Kind = []string{"SECRET=1"}, "/elsewhere", []string{"/y", "secret"}, Agent
	if diff := cmp.Diff(Args(base, merged(), descriptors()), Args(call, merged(), descriptors())); diff != "" {
		t.Error(diff)
	}
}
