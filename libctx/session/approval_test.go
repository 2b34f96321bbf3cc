package session

import (
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
)

func asks(run libctx.Run, call libctx.Call) *Fact {
	return &Fact{Run: run, Frame: &wire.ApprovalRequest{
		Head: wire.Head{Type: "approval_request"}, Call: call, Name: "fs.read", Arguments: []byte(`{"path":"a"}`),
		Effect: "workspace_read", Digest: "sha256:0", Expires: 1000,
	}}
}

func answers(run libctx.Run, call libctx.Call, decision string) *Fact {
	return &Fact{Run: run, Frame: &wire.ApprovalResult{Head: wire.Head{Type: "approval_result"}, Call: call, Decision: decision}}
}

// TestOpenQuestion: a question that a dead host left open is refused, once; a call
// about which somebody was asked is settled, however it was answered, and is no
// matter of the next run.
func TestOpenQuestion(t *testing.T) {
	for _, indexed := range []bool{false, true} {
		p := place(t)
		s := open(t, p, "default")
		dead, op := libctx.NewRun(), libctx.NewRun()
		commit(t, s, append(begin(s, dead, "m1", "q"), modelSays(dead, "c1", "c2", "c3", "c4"))...)
		commit(t, s, asks(dead, "c1"))
		commit(t, s, answers(dead, "c1", "allow_once"), policy(dead, "c1", true))
		commit(t, s, asks(dead, "c2"))
		commit(t, s, answers(dead, "c2", "deny"))
		commit(t, s, asks(dead, "c3"))
		commit(t, s, beginTsh(op, "t1"), tshCall(op, "c1"), asks(op, "c1"))
		if indexed {
			if err := s.writeIndex(); err != nil {
				t.Fatal(err)
			}
		}
		s.die()

		var asked []OpenCall
		s = recovered(t, p, pure(&asked))
		if got := carriedCalls(t, s); !slices.Equal(got, []libctx.Call{"c4"}) {
			t.Errorf("carried %v", got)
		}
		ledger := read(t, p.dir("default")+"/"+ledgerFile)
		if n := strings.Count(ledger, `"decision":"interrupted"`); n != 2 {
			t.Errorf("%d questions were refused in\n%s", n, ledger)
		}
		for _, want := range []string{
			`"call":"c1","name":"fs.read","status":"error","text":"` + OutcomeUnknown,
			`"call":"c2","name":"fs.read","status":"error","text":"` + NeverBegun,
			`"call":"c3","name":"fs.read","status":"error","text":"` + NeverBegun,
			`"call":"c1","name":"fs.read","status":"error","content":"` + NeverBegun,
		} {
			if strings.Count(ledger, want) != 1 {
				t.Errorf("not once %s in\n%s", want, ledger)
			}
		}
		closeOf(t, s)
		again := open(t, p, "default")
		if read(t, p.dir("default")+"/"+ledgerFile) != ledger {
			t.Error("opening it again changes something")
		}
		closeOf(t, again)
	}
}

// TestQuestionIsWhole: the event of a question has all that was asked.
func TestQuestionIsWhole(t *testing.T) {
	s := open(t, place(t), "default")
	run := libctx.NewRun()
	commit(t, s, append(begin(s, run, "m1", "q"), modelSays(run, "c1"))...)
	q := asks(run, "c1")
	args := `{"a":"` + strings.Repeat("x", libctx.MaxInlineText-8) + `"}`
	q.Frame.(*wire.ApprovalRequest).Arguments = []byte(args)
	line := commit(t, s, q)[0].Line
	f, err := wire.DecodeFrame(line)
	if err != nil || string(f.(*wire.ApprovalRequest).Arguments) != args || strings.Contains(string(line), "truncated") {
		t.Errorf("%v %.200s", err, line)
	}
}
