package cli

import (
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
)

// TestApprove: nobody is there to be asked: what --approve names is allowed, all
// else is denied at once.
func TestApprove(t *testing.T) {
	ask := func(n int, tool string) string {
		return fmt.Sprintf(`{"type":"approval_request","id":"RUN.%d","run":"RUN","call":"c%d","name":%q,"arguments":{"args":["\\u202ex"]},"effect":"host_process","digest":"sha256:0","uid":7,"expires_ms":1000}`, n, n, tool)
	}
	const late = `{"type":"error","code":"ENOENT","message":"no such question is open"}`
	for _, c := range []struct {
		args, want []string
		err        string
	}{
		{nil, []string{"deny", "deny"},
			"asked uid 7: may bash \\u202ex run? (host_process, sha256:0)\n" +
				"a call of bash needs approval: denied; --approve bash allows it\n" +
				"asked uid 7: may bash.x \\u202ex run? (host_process, sha256:0)\n" +
				"a call of bash.x needs approval: denied; --approve bash.x allows it\n" +
				"answered: denied\n"},
		{[]string{"--quiet", "--approve", "bash"}, []string{"allow_once", "deny"},
			"a call of bash.x needs approval: denied; --approve bash.x allows it\n"},
		{[]string{"--quiet", "--approve", "bash", "--approve=bash.x"}, []string{"allow_once", "allow_once"}, ""},
	} {
		w := newWorld(t)
		serve := func(p *peer) {
			_, r := p.read()
			id := libctx.ClientID("")
			switch r := r.(type) {
			case *wire.Send:
				id = r.ID
			case *wire.Tsh:
				id = r.ID
			}
			p.say(id, start)
			for i, want := range c.want {
				p.say("", ask(i+2, []string{"bash", "bash.x"}[i]))
				line, r := p.read()
				if a, ok := r.(*wire.Approve); !ok || a.Decision != want || a.Call != libctx.Call(fmt.Sprint("c", i+2)) || string(a.Run) != run1 {
					t.Errorf("%v: answered %s, want %s", c.args, line, want)
				}
			}
			p.say("", late, `{"type":"approval_result","id":"RUN.4","run":"RUN","call":"c3","decision":"deny"}`, done)
			p.read()
		}
		w.serve(serve, serve)
		w.want(w.run(append([]string{"agent", "send", "coder"}, append(c.args, "x")...)...), 0, "", c.err)
		w.want(w.run(append([]string{"agent", "tsh", "coder"}, append(c.args, "--", "bash", "x")...)...), 0, "", c.err)
	}
	w := newWorld(t)
	if got := w.run("agent", "send", "--approve", "../x", "coder", "x"); got.code != 2 || !strings.Contains(got.err, "--approve") {
		t.Errorf("%+v", got)
	}
}
