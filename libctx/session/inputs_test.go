package session

import (
	"os"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// TestInputOrder: accepted, entered, delivered, each once, and then the run may end.
func TestInputOrder(t *testing.T) {
	s := open(t, place(t), "default")
	run, op := libctx.NewRun(), libctx.NewRun()
	commit(t, s, begin(s, run, "m1", "q")...)
	commit(t, s, beginTsh(op, "t1"))
	in := Input{Client: "i1", Op: OpSteer, Text: "left"}
	refused := func(kind errdefs.Kind, records ...Record) {
		t.Helper()
		_, err := s.Commit(records...)
		wantKind(t, err, kind)
	}
	refused(errdefs.Invalid, in.Deliver(run)...)
	refused(errdefs.Invalid, in.delivered(run))
	refused(errdefs.Invalid, in.Accept(op, "p"))
	refused(errdefs.Invalid, in.Accept(libctx.NewRun(), "p"))
	refused(errdefs.Exists, Input{Client: "m1", Op: OpSteer, Text: "x"}.Accept(run, "p"))
	refused(errdefs.Exists, in.Accept(run, "p"), in.Accept(run, "p"))
	commit(t, s, in.Accept(run, "p"))
	if got, payload, ok, err := s.Client("i1"); got != run || payload != "p" || !ok || err != nil {
		t.Errorf("client i1 is of %s %s %v %v", got, payload, ok, err)
	}
	refused(errdefs.Exists, in.Accept(run, "p"))
	refused(errdefs.Exists, beginTsh(libctx.NewRun(), "i1"))
	refused(errdefs.Invalid, in.delivered(run))
	refused(errdefs.Invalid, done(run))
	events := commit(t, s, in.Deliver(run)...)
	if got := types(events); got != "steering_delivered" {
		t.Errorf("frames %s", got)
	}
	refused(errdefs.Invalid, in.Deliver(run)...)
	refused(errdefs.Invalid, in.delivered(run))
	commit(t, s, done(run))
	entries, err := s.Conversation(1 << 20)
	if err != nil || len(entries) != 2 || entries[1].Origin != OpSteer || entries[1].ClientID != "i1" || entries[1].Parent != "e1" {
		t.Errorf("conversation %+v, %v", entries, err)
	}
}

// TestInputsOfADeadHost: what it had accepted is there afterwards, in the order
// in which it was said, and means the same again.
func TestInputsOfADeadHost(t *testing.T) {
	for _, indexed := range []bool{false, true} {
		p := place(t)
		s := open(t, p, "default")
		run := libctx.NewRun()
		commit(t, s, append(begin(s, run, "m1", "q"), says(run, "", "c1"))...)
		inputs := []Input{
			{"i1", OpFollowUp, "then " + strings.Repeat("long ", 20000)}, {"i2", OpFinish, "enough"}, {"i3", OpSteer, "left"},
		}
		for _, in := range inputs {
			commit(t, s, in.Accept(run, "p"))
		}
		if indexed {
			if err := s.writeIndex(); err != nil {
				t.Fatal(err)
			}
		}
		s.die()
		s = open(t, p, "default")
		entries, err := s.Conversation(1 << 20)
		if err != nil || len(entries) != 6 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		for i, in := range inputs {
			if e := entries[3+i]; e.Text() != in.Text || e.Origin != in.Op || e.ClientID != in.Client || e.Run != run {
				t.Errorf("entry %d is %.200v", i, e)
			}
		}
		ledger, err := os.ReadFile(p.dir("default") + "/" + ledgerFile)
		if err != nil {
			t.Fatal(err)
		}
		checkInputs(t, ledger, true)
		if got, _, ok, err := s.Client("i2"); got != run || !ok || err != nil {
			t.Errorf("client i2 is of %s, %v %v", got, ok, err)
		}
		closeOf(t, s)
	}
}

// TestRoomForInputs: what was accepted can be delivered, and the run can end,
// however full the ledger is.
func TestRoomForInputs(t *testing.T) {
	s := open(t, place(t), "default")
	s.limits = limits{record: 64 << 10, ledger: 256 << 10, reserve: 16 << 10, records: 1000, reserveRecords: 20}
	run := libctx.NewRun()
	commit(t, s, begin(s, run, "m1", "q")...)
	var inputs []Input
	for i := range 100 {
		in := Input{Client: libctx.ClientID("i" + string(rune('0'+i%10)) + string(rune('0'+i/10))), Op: OpFollowUp, Text: strings.Repeat("<\n", 4000)}
		if _, err := s.Commit(in.Accept(run, "p")); err != nil {
			wantKind(t, err, errdefs.NoSpace)
			break
		}
		inputs = append(inputs, in)
	}
	if len(inputs) < 2 {
		t.Fatalf("%d inputs were accepted", len(inputs))
	}
	for {
		if _, err := s.Commit(says(run, "some more")); err != nil {
			wantKind(t, err, errdefs.NoSpace)
			break
		}
	}
	for { // what ends something takes the reserve, and not the room of the inputs
		if _, err := s.Commit(&UsageUncertain{Run: run, Kind: "assistant", Reason: strings.Repeat("x", 1000)}); err != nil {
			wantKind(t, err, errdefs.NoSpace)
			break
		}
	}
	commit(t, s, inputs[0].Deliver(run)...)
	var rest []Record
	for _, in := range inputs[1:] {
		rest = append(rest, in.Deliver(run)...)
	}
	commit(t, s, append(rest, done(run))...)
	if s.st.size > s.limits.ledger {
		t.Errorf("the ledger is %d bytes", s.st.size)
	}
}

// TestAnswerOfAModel: everything a model's answer has survives, byte for byte
// where it is a provider's own.
func TestAnswerOfAModel(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	run := libctx.NewRun()
	data := jsontext.Value(`{"b":1.50,"a":"\u003c<","n":12345678901234567890123}`)
	e := &Entry{
		Run: run, Kind: KindMessage, Role: RoleAssistant, Model: "lab/large", Stop: "tool_calls",
		Opaque: &modelwire.Opaque{Provider: "lab", Model: "lab/large", Data: data},
		Content: []wire.Part{
			{Type: "reasoning", Text: "hm "}, wire.Text("so"), {Type: "reasoning", Text: "yes"},
			{Type: "tool_call", Call: "c1", Name: "t", Arguments: jsontext.Value("{}"), Invalid: `{"x":`},
		},
	}
	commit(t, s, begin(s, run, "m1", "q")...)
	events := commit(t, s, e, &Usage{Run: run, Kind: "assistant", Model: "lab/large", Input: 3, Output: 4})
	if got := types(events); got != "reasoning_message message tool_call usage" {
		t.Errorf("frames %s", got)
	}
	if want := `"role":"assistant","content":[{"type":"reasoning","text":"hm "},{"type":"reasoning","text":"yes"}]}`; !strings.Contains(string(events[0].Line), want) {
		t.Errorf("reasoning is %s", events[0].Line)
	}
	closeOf(t, s)
	s = open(t, p, "default")
	entries, err := s.Conversation(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	got := entries[1]
	if got.Model != e.Model || got.Stop != e.Stop || got.Opaque == nil || string(got.Opaque.Data) != string(data) || got.Opaque.Provider != "lab" ||
		got.Content[3].Invalid != `{"x":` || got.Content[0].Text != "hm " {
		t.Errorf("the entry is %+v", got)
	}
}

// TestLongReasoning is clipped on the wire as text is.
func TestLongReasoning(t *testing.T) {
	s := open(t, place(t), "default")
	run := libctx.NewRun()
	commit(t, s, begin(s, run, "m1", "q")...)
	long := strings.Repeat("thought ", 20000)
	events := commit(t, s, &Entry{Run: run, Kind: KindMessage, Role: RoleAssistant, Content: []wire.Part{{Type: "reasoning", Text: long}, wire.Text("a")}})
	if got := types(events); got != "reasoning_message message" {
		t.Fatalf("frames %s", got)
	}
	if line := string(events[0].Line); len(line) > 80<<10 || !strings.Contains(line, `"truncated":true,"bytes":160000`) {
		t.Errorf("%d bytes, ends in %s", len(line), line[max(0, len(line)-60):])
	}
}

// TestUnknownUse: unknown is not zero, in a run and in its session.
func TestUnknownUse(t *testing.T) {
	for name, c := range map[string]struct {
		used         []func(libctx.Run) Record
		cost, tokens bool // at least
		member       bool
	}{
		"known": {[]func(libctx.Run) Record{func(r libctx.Run) Record { return &Usage{Run: r, Kind: "assistant", Cost: new(int64(0))} }}, false, false, true},
		"no price": {[]func(libctx.Run) Record{
			func(r libctx.Run) Record { return &Usage{Run: r, Kind: "assistant", Input: 7} },
			func(r libctx.Run) Record { return &Usage{Run: r, Kind: "assistant", Input: 1, Cost: new(int64(5))} },
		}, true, false, false},
		"uncertain": {[]func(libctx.Run) Record{func(r libctx.Run) Record { return &UsageUncertain{Run: r, Kind: "assistant"} }}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := place(t)
			s := open(t, p, "default")
			run := libctx.NewRun()
			commit(t, s, begin(s, run, "m1", "q")...)
			for _, make := range c.used {
				commit(t, s, make(run))
			}
			if strings.Contains(strings.Split(read(t, p.dir("default")+"/"+ledgerFile), "\n")[4], "cost_picodollars") != c.member {
				t.Error("the member cost_picodollars is not as it should be")
			}
			end := done(run)
			commit(t, s, end)
			if end.TokensAtLeast != c.tokens || end.CostAtLeast != c.cost {
				t.Errorf("the run: tokens at least %v, cost at least %v", end.TokensAtLeast, end.CostAtLeast)
			}
			turn(t, s, "m2", "q", "a")
			closeOf(t, s)
			s = open(t, p, "default")
			if i := s.Info(); i.TokensAtLeast != c.tokens || i.CostAtLeast != c.cost {
				t.Errorf("the session: %+v", i)
			}
		})
	}
}
