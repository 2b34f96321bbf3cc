package prompt

import (
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/window"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

const model libctx.Model = "debug/echo"

func user(text ...string) Row { return row("user", text...) }

func assistant(parts ...wire.Part) Row {
	return Row{Message: modelwire.Message{Role: "assistant", Content: parts}, Model: model}
}

func row(role string, text ...string) Row {
	r := Row{Message: modelwire.Message{Role: role}}
	for _, s := range text {
		r.Content = append(r.Content, wire.Text(s))
	}
	return r
}

func called(id, arguments string) wire.Part {
	return wire.Part{Type: "tool_call", Call: libctx.Call(id), Name: "tsh", Arguments: jsontext.Value(arguments)}
}

func resulted(id, text string) Row {
	n := 0
	return Row{Message: modelwire.Message{Role: "tool", Content: []wire.Part{
		{Type: "tool_result", Call: libctx.Call(id), Name: "tsh", Status: "ok", Text: text, ExitCode: &n, DurationMS: 7},
	}}}
}

// show is an array in few words, the system message left out.
func show(f *Fitted) string {
	var out []string
	for _, m := range f.Messages[1:] {
		s := m.Role[:1] + ":"
		for _, p := range m.Content {
			switch p.Type {
			case "text":
				s += p.Text
			case "reasoning":
				s += "<" + p.Text + ">"
			case "tool_call":
				s += fmt.Sprintf("[%s %s]", p.Name, p.Call)
			case "tool_result":
				s += fmt.Sprintf("(%s %s %s)", p.Call, p.Status, p.Text)
			}
			s += "|"
		}
		if m.Opaque != nil {
			s += string(m.Opaque.Data)
		}
		out = append(out, strings.TrimSuffix(s, "|"))
	}
	return strings.Join(out, " ")
}

func fitAll(t testing.TB, in Input) *Fitted {
	t.Helper()
	f, err := Fit(in)
	if err != nil {
		t.Fatal(err)
	}
	check(t, in, f)
	return f
}

// check wants what holds of every array: it is within its bytes, its bytes are
// counted right, and it is a request that the model socket takes.
func check(t interface{ Fatalf(string, ...any) }, in Input, f *Fitted) {
	text, err := json.Marshal(f.Messages, json.Deterministic(true))
	if err != nil {
		t.Fatalf("%v", err)
	}
	system, _ := sizeOf(f.Messages[0])
	if int64(len(text)) != f.Bytes || f.Bytes > in.Window.PromptBytes(system) {
		t.Fatalf("%d bytes, counted %d, allowed %d", len(text), f.Bytes, in.Window.PromptBytes(system))
	}
	line, err := modelwire.MarshalRequest(&modelwire.Generate{Version: modelwire.Version, Model: model, Messages: f.Messages})
	if err != nil {
		t.Fatalf("%v", err)
	}
	if !strings.Contains(string(line), string(text)) {
		t.Fatalf("the request carries other bytes")
	}
	if _, err := modelwire.DecodeRequest(line[:len(line)-1]); err != nil {
		t.Fatalf("%v\n%s", err, show(f))
	}
	if len(f.Messages) > 1 && f.Messages[1].Role != "user" {
		t.Fatalf("the first message is of %s", f.Messages[1].Role)
	}
}

func TestPairs(t *testing.T) {
	data := func(m libctx.Model) *modelwire.Opaque {
		return &modelwire.Opaque{Provider: modelwire.ProviderOf(m), Model: m, Data: jsontext.Value(`{"s":1}`)}
	}
	think := wire.Part{Type: "reasoning", Text: "hm"}
	ours, theirs := assistant(think, wire.Text("x")), assistant(think, wire.Text("x"))
	ours.Opaque, theirs.Opaque, theirs.Model = data(model), data("debug/tools"), "debug/tools"
	onlyData := assistant(think)
	onlyData.Opaque = data(model)
	lost := "(c1 error " + noResult + ")"
	for name, c := range map[string]struct {
		rows []Row
		want string
	}{
		"nothing":  {nil, ""},
		"in order": {[]Row{user("a"), assistant(called("c1", "{}"), called("c2", "{}")), resulted("c2", "2"), resulted("c1", "1"), assistant(wire.Text("b"))}, "u:a a:[tsh c1]|[tsh c2] t:(c1 ok 1) t:(c2 ok 2) a:b"},
		"a late result": {[]Row{user("a"), assistant(called("c1", "{}")), user("b"), resulted("c1", "1"), assistant(wire.Text("c"))},
			"u:a a:[tsh c1] t:(c1 ok 1) u:b a:c"},
		"no result":       {[]Row{user("a"), assistant(called("c1", "{}")), user("b")}, "u:a a:[tsh c1] t:" + lost + " u:b"},
		"an orphan":       {[]Row{user("a"), resulted("c1", "1"), assistant(wire.Text("b")), resulted("c1", "1")}, "u:a a:b"},
		"a second result": {[]Row{user("a"), assistant(called("c1", "{}")), resulted("c1", "1"), resulted("c1", "2")}, "u:a a:[tsh c1] t:(c1 ok 1)"},
		"an id again": {[]Row{user("a"), assistant(called("c1", "{}")), resulted("c1", "1"), assistant(called("c1", "{}")), resulted("c1", "2")},
			"u:a a:[tsh c1] t:(c1 ok 1) a:[tsh c1] t:(c1 ok 2)"},
		"an id again, unanswered": {[]Row{user("a"), assistant(called("c1", "{}")), assistant(called("c1", "{}")), resulted("c1", "2")},
			"u:a a:[tsh c1] t:" + lost + " a:[tsh c1] t:(c1 ok 2)"},
		"an id twice":       {[]Row{user("a"), assistant(called("c1", "{}"), called("c1", "{}")), resulted("c1", "1")}, "u:a a:[tsh c1] t:(c1 ok 1)"},
		"a call unnamed":    {[]Row{user("a"), assistant(wire.Part{Type: "tool_call", Call: "c1"}), resulted("c1", "1")}, "u:a a:[invalid_name c1] t:(c1 ok 1)"},
		"a call without id": {[]Row{user("a"), assistant(wire.Part{Type: "tool_call", Name: "tsh"}, wire.Text("x"))}, "u:a a:x"},
		"an empty result":   {[]Row{user("a"), assistant(called("c1", "{}")), resulted("c1", " \n")}, "u:a a:[tsh c1] t:(c1 ok " + noOutput + ")"},
		"empty messages":    {[]Row{user(""), user("a", " ", "b"), assistant(), assistant(wire.Text("\n")), assistant(think), onlyData, user("c")}, "u:a|b|c"},
		"text beside calls": {[]Row{user("a"), assistant(wire.Text(" "), called("c1", "{}")), resulted("c1", "1")}, "u:a a:[tsh c1] t:(c1 ok 1)"},
		"users in a row":    {[]Row{user("a"), user("b"), assistant(wire.Text("c")), user("d")}, "u:a|b a:c u:d"},
		"our reasoning":     {[]Row{user("a"), ours}, `u:a a:<hm>|x|{"s":1}`},
		"their reasoning":   {[]Row{user("a"), theirs}, "u:a a:x"},
		"assistants in a row": {[]Row{user("a"), ours, assistant(wire.Text("y"), called("c1", "{}")), resulted("c1", "1")},
			"u:a a:x|y|[tsh c1] t:(c1 ok 1)"},
		"another role": {[]Row{row("system", "obey"), user("a")}, "u:a"},
		"the begin":    {[]Row{assistant(wire.Text("b")), user("c")}, "u:" + leftOut + " a:b u:c"},
	} {
		in := Input{System: "s", Rows: c.rows, Run: len(c.rows), Model: model}
		f, err := Fit(in)
		if err != nil {
			t.Fatal(err)
		}
		check(t, in, f)
		if got := show(f); got != c.want && got != strings.ReplaceAll(c.want, `|{"s"`, `{"s"`) {
			t.Errorf("%s:\n%s\n%s", name, got, c.want)
		}
		if f.Dropped != 0 || f.Clipped != 0 {
			t.Errorf("%s: dropped %d, clipped %d", name, f.Dropped, f.Clipped)
		}
	}
}

// What is handed over stays as it is, whatever is made of it.
func TestFitChangesNothing(t *testing.T) {
	make := func() []Row {
		return []Row{user("a", ""), assistant(wire.Part{Type: "reasoning", Text: "r"}, wire.Text(strings.Repeat("x", 9000)), called("c1", `{"a":"`+strings.Repeat("y", 9000)+`"}`)), resulted("c1", strings.Repeat("z", 9000)), user("b"), user("c")}
	}
	rows := make()
	fitAll(t, Input{System: "s", Rows: rows, Run: 3, Model: model, Window: 2000})
	if d := cmp.Diff(make(), rows); d != "" {
		t.Error(d)
	}
}

// The array is charged to the byte.
func TestExactly(t *testing.T) {
	const tokens = 1024
	budget := int(window.Size(tokens).InputChars())
	for _, over := range []int{0, 1} {
		empty, _ := sizeOf([]modelwire.Message{row("system", "s").Message, user("x").Message})
		empty--
		in := Input{System: "s", Rows: []Row{user(strings.Repeat("é", (budget-int(empty))/2) + strings.Repeat("x", (budget-int(empty))%2+over))}, Model: model, Window: tokens}
		f, err := Fit(in)
		switch {
		case over == 0 && (err != nil || f.Bytes != int64(budget)):
			t.Errorf("%v, %v", f, err)
		case over == 1 && errdefs.KindOf(err) != errdefs.TooMuch:
			t.Errorf("one byte more: %v", err)
		}
	}
	for _, in := range []Input{
		{System: strings.Repeat("s", budget), Window: tokens},
		{System: "s", Window: 1, Rows: []Row{user("a")}},
		{System: "s", Window: 0, Rows: []Row{user(strings.Repeat("x", libctx.HistoryBytes))}},
	} {
		if _, err := Fit(in); errdefs.KindOf(err) != errdefs.TooMuch {
			t.Error(err)
		}
	}
}

// Old turns leave first, whole, and a note says so.
func TestOldestLeaveFirst(t *testing.T) {
	var rows []Row
	for i := range 100 {
		id := fmt.Sprint("c", i)
		rows = append(rows, user(fmt.Sprint("q", i)), assistant(called(id, "{}")), resulted(id, strings.Repeat("r", 300)), assistant(wire.Text(fmt.Sprint("a", i))))
	}
	rows = append(rows, user("now"))
	in := Input{System: "s", Rows: rows, Run: len(rows) - 1, Model: model, Window: 2048}
	f := fitAll(t, in)
	got := show(f)
	if !strings.HasPrefix(got, "u:"+leftOut) || !strings.HasSuffix(got, "a:a99 u:now") || f.Dropped == 0 || f.Clipped != 0 {
		t.Fatalf("%d dropped, %d clipped: %s", f.Dropped, f.Clipped, got)
	}
	if budget := in.Window.InputChars(); f.Bytes < budget*3/4-1000 {
		t.Errorf("%d of %d bytes are used", f.Bytes, budget)
	}
	// Handing over only the newest part makes no difference but that it is said.
	in.Rows, in.Older = rows[200:], true
	in.Run = len(in.Rows) - 1
	if again := fitAll(t, in); show(again) != got {
		t.Errorf("%s", show(again))
	}
	in.Rows, in.Run = rows[396:], 4
	if f := fitAll(t, in); !strings.HasPrefix(show(f), "u:"+leftOut+"|q99 ") || f.Dropped != 0 {
		t.Errorf("%s", show(f))
	}
}

// A long message is shortened and keeps its head and tail; it is never skipped.
func TestLongRowsAreClipped(t *testing.T) {
	long := "HEAD" + strings.Repeat(`"`, 1<<20) + "TAIL"
	rows := []Row{
		user("old"), assistant(wire.Text("answer")),
		user(long), assistant(wire.Text(long), called("c1", `{"text":`+quoted(long)+`}`)), resulted("c1", long),
		assistant(wire.Part{Type: "tool_call", Call: "c2", Name: "tsh", Invalid: long}), resulted("c2", "x"), user("now"),
	}
	f := fitAll(t, Input{System: "s", Rows: rows, Run: len(rows) - 1, Model: model, Window: 32_000})
	if f.Dropped != 0 || f.Clipped != 4 || len(f.Messages) != 9 {
		t.Fatalf("%d dropped, %d clipped, %d messages", f.Dropped, f.Clipped, len(f.Messages))
	}
	share := window.Size(32_000).InputChars() / 16
	for i, m := range f.Messages[3:7] {
		text := m.Content[len(m.Content)-1]
		s := text.Text + string(text.Arguments) + text.Invalid
		if n, _ := sizeOf(m); n > share || n < share/2 || !strings.Contains(s, "HEAD") || !strings.Contains(s, "TAIL") {
			t.Errorf("%d: %d bytes of %d: %.200s", i, n, share, s)
		}
	}
	if a := f.Messages[4].Content[1].Arguments; !a.IsValid() || !strings.HasPrefix(string(a), `{"clipped":"`) {
		t.Errorf("%.100s", a)
	}
}

func quoted(s string) string {
	q, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		panic(err)
	}
	return string(q)
}

// Of a run that is too long the user's words stay whole, the newest turn stays,
// and older turns of the run leave before it is shortened to nothing.
func TestLongRun(t *testing.T) {
	rows := []Row{user("old"), assistant(wire.Text("answer")), user("the task")}
	for i := range 64 {
		id := fmt.Sprint("c", i)
		rows = append(rows, assistant(called(id, "{}")), resulted(id, strings.Repeat("r", 50<<10)))
		if i == 10 {
			rows = append(rows, user("and this"))
		}
	}
	f := fitAll(t, Input{System: "s", Rows: rows, Run: 2, Model: model, Window: 16_384})
	got := show(f)
	if !strings.HasPrefix(got, "u:"+leftOut+"|the task") || !strings.Contains(got, "and this") || strings.Contains(got, "answer") || !strings.Contains(got, "(c63 ok rrr") {
		t.Fatalf("%.300s", got)
	}
	last := f.Messages[len(f.Messages)-1]
	if n, _ := sizeOf(last); n < 12_000 {
		t.Errorf("the newest result has %d bytes", n)
	}
	if f.Dropped == 0 || f.Clipped < 2 {
		t.Errorf("%d dropped, %d clipped", f.Dropped, f.Clipped)
	}
	// 32 long results at once are shortened together.
	many := []Row{user("the task"), assistant()}
	for i := range 32 {
		id := fmt.Sprint("c", i)
		many[1].Content = append(many[1].Content, called(id, "{}"))
		many = append(many, resulted(id, strings.Repeat("r", 50<<10)))
	}
	f = fitAll(t, Input{System: "s", Rows: many, Model: model, Window: 16_384})
	if len(f.Messages) != 35 || f.Clipped != 32 {
		t.Errorf("%d messages, %d clipped", len(f.Messages), f.Clipped)
	}
	if _, err := Fit(Input{System: "s", Rows: many, Model: model, Window: 1000}); errdefs.KindOf(err) != errdefs.TooMuch {
		t.Errorf("a window for less than that: %v", err)
	}
}

// Where the window is unknown the messages have their own budget beside the
// system message.
func TestUnknownWindow(t *testing.T) {
	var rows []Row
	for range 1000 {
		rows = append(rows, user(strings.Repeat("q", 500)), assistant(wire.Text("a")))
	}
	rows = append(rows, user("now"))
	f := fitAll(t, Input{System: strings.Repeat("s", 500_000), Rows: rows, Run: len(rows) - 1, Model: model})
	if n := f.Bytes - 500_000; n > libctx.HistoryBytes+200 || n < libctx.HistoryBytes*2/3 || f.Dropped == 0 {
		t.Errorf("%d bytes of messages, %d dropped", n, f.Dropped)
	}
}

// While a run grows in a full window, one array mostly begins with the whole of
// the one before it.
func TestBeginIsStable(t *testing.T) {
	var rows []Row
	turn := func(id, text string) {
		rows = append(rows, assistant(called(id, "{}")), resulted(id, strings.Repeat(text, 100)))
	}
	for i := range 100 {
		rows = append(rows, user("question"))
		turn(fmt.Sprint("p", i), "past")
	}
	run := len(rows)
	rows = append(rows, user("now"))
	changes, before := 0, ""
	for i := range 120 {
		f := fitAll(t, Input{System: "s", Rows: rows, Run: run, Model: model, Window: 8192})
		now := show(f)
		if !strings.HasPrefix(now, before) {
			changes++
		}
		before = now
		turn(fmt.Sprint("c", i), "result")
	}
	if changes > 30 {
		t.Errorf("the begin of the array changed %d times in 120 turns", changes)
	}
}
