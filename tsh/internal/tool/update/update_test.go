package update

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/capwire"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/tsh/internal/config"
	"cortexfs.org/tsh/internal/tool"
	"github.com/go-json-experiment/json/jsontext"
)

// daemon answers each connection with what reply makes of its request, and passes
// the requests on.
func daemon(t *testing.T, reply func(capwire.Request) string) (string, <-chan capwire.Request) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "s")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "control.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); os.RemoveAll(dir) })
	got := make(chan capwire.Request, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, err := wire.NewLines(c, libctx.MaxCapFrame).Next()
			if err != nil {
				t.Error(err)
			}
			q, err := capwire.Decode(line)
			if err != nil {
				t.Error(err)
			}
			got <- q
			c.Write([]byte(reply(q)))
			c.Close()
		}
	}()
	return path, got
}

func conf(socket string) config.Self {
	return config.Self{Socket: socket, Agent: "coder", Session: "default", Run: "01KB9QZ3M8T5V2N7X4C6D1E0FG"}
}

func call(ctx context.Context, c config.Self, args string) (string, error) {
	out := new(tool.Output)
	err := Tool(c).Call(ctx, jsontext.Value(args), out)
	return out.Content(), err
}

func TestUpdate(t *testing.T) {
	socket, got := daemon(t, func(q capwire.Request) string {
		line, _ := capwire.Reply{Type: capwire.Updated, ID: q.ID}.Encode()
		return string(line)
	})
	ids := map[string]bool{}
	for _, args := range []string{
		`{"control":"system.md","content":"Be kind.\n"}`, `{"args":["system.md","Be kind.\n"]}`, `{"args":["{\"control\":\"system.md\",\"content\":\"Be kind.\\n\"}"]}`,
	} {
		said, err := call(t.Context(), conf(socket), args)
		if err != nil || !strings.Contains(said, "system.md has 9 bytes now; it counts from the next run on\n[sha256 ") {
			t.Errorf("%s: %q, %v", args, said, err)
		}
		q := <-got
		if q.Op != capwire.Update || q.Agent != "coder" || q.Session != "default" || q.Run != "01KB9QZ3M8T5V2N7X4C6D1E0FG" || q.Control != "system.md" || *q.Content != "Be kind.\n" {
			t.Errorf("%s: %+v", args, q)
		}
		if !strings.HasPrefix(q.ID, "update-") || len(q.ID) != len("update-")+16 || ids[q.ID] {
			t.Errorf("request id %q", q.ID)
		}
		ids[q.ID] = true
	}
	if _, err := call(t.Context(), conf(socket), `{"args":["system.md",""]}`); err != nil || *(<-got).Content != "" {
		t.Errorf("an empty text: %v", err)
	}
}

// TestRefusedHere: what can not be right is asked of nobody.
func TestRefusedHere(t *testing.T) {
	for args, part := range map[string]string{
		`{}`:                                     "control is missing",
		`{"content":"x"}`:                        "control is missing",
		`{"control":"system.md"}`:                "content is missing",
		`{"control":"policy","content":"x"}`:     "policy",
		`{"control":"system.md","content":null}`: "null",
		`{"control":"system.md","content":"x","agent":"other"}`:                                      "agent",
		`{"control":"system.md","content":"a\u0000b"}`:                                               "NUL",
		`{"control":"system.md","content":"` + strings.Repeat("x", libctx.MaxCapContent+1) + `"}`:    "8193 bytes",
		`{"control":"system.md","content":"` + strings.Repeat(`\u0001`, libctx.MaxCapContent) + `"}`: "as JSON",
		`{"args":["system.md","x","y"]}`:                                                             "one word too many",
	} {
		if _, err := call(t.Context(), conf("/nowhere"), args); !errdefs.Is(err, errdefs.Invalid) && !errdefs.Is(err, errdefs.TooBig) || !strings.Contains(err.Error(), part) {
			t.Errorf("%.80s: %v", args, err)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	const args = `{"args":["system.md","x"]}`
	if _, err := call(t.Context(), config.Self{}, args); !errdefs.Is(err, errdefs.Unavailable) || errdefs.HintOf(err) == "" {
		t.Errorf("outside of a run: %v", err)
	}
	if _, err := call(t.Context(), conf("/nowhere/at/all"), args); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("no socket: %v", err)
	}
	for reply, kind := range map[string]errdefs.Kind{
		"": errdefs.Protocol, "half": errdefs.Protocol, "[]\n": errdefs.Protocol, `{"type":"agent.updated","request_id":"other"}` + "\n": errdefs.Protocol,
		`{"type":"error","code":"EACCES","message":"not permitted"}` + "\n":      errdefs.Denied,
		`{"type":"error","code":"ECANCELED","message":"the run is over"}` + "\n": errdefs.Cancelled,
	} {
		socket, _ := daemon(t, func(capwire.Request) string { return reply })
		if _, err := call(t.Context(), conf(socket), args); !errdefs.Is(err, kind) {
			t.Errorf("%q: %v", reply, err)
		}
	}
	// Who never answers is waited for as long as the call may take.
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	socket, _ := daemon(t, func(capwire.Request) string { cancel(enough); <-t.Context().Done(); return "" })
	if _, err := call(ctx, conf(socket), args); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
}
