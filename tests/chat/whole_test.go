package chat

import (
	"strings"
	"testing"
)

// TestWhole is a conversation as people have them: tools, an answer in Markdown,
// wide characters, a paste of several lines, a run that is cancelled, one that is
// told something on the way, and the end.
func TestWhole(t *testing.T) {
	w := scripted(t, []string{
		`{"block":"tools"}`,
		`{"expect":{"last":"what is in README.md?"}}`,
		`{"answer":{"text":"Reading.","calls":[{"name":"tsh","arguments":{"args":["fs.read","README.md"]}}]}}`,
		`{"block":"a failing one"}`,
		`{"answer":{"calls":[{"name":"tsh","arguments":{"args":["fs.read","none"]}}]}}`,
		`{"block":"markdown"}`,
		`{"answer":{"text":"# Three lines\n\n- ` + "`one`" + `\n- **two**\n- three\n\n` + "```" + `\ncode  here\n` + "```" + `\nThat is all of it, and it is long enough to be wrapped where a word ends, not in one."}}`,
		`{"block":"wide"}`,
		`{"expect":{"last":"日本語 é"}}`,
		`{"answer":{"text":"はい。"}}`,
		`{"block":"paste"}`,
		`{"expect":{"last":"first\nsecond \\x1b[31m\n\tthird!"}}`,
		`{"answer":{"text":"three lines"}}`,
		`{"block":"hang"}`,
		`{"type":"delta","text":"I begin"}`,
		`{"fault":"hang"}`,
		`{"block":"long"}`,
		`{"answer":{"text":"Waiting.","calls":[{"name":"tsh","arguments":{"args":["shell.exec","cat gate"]}}]}}`,
		`{"block":"steered"}`,
		`{"expect":{"last":"not that","contains":["opened"]}}`,
		`{"answer":{"text":"Something else then."}}`,
		`{"block":"followed"}`,
		`{"expect":{"last":"and now?"}}`,
		`{"answer":{"text":"Now it is done."}}`,
	}, "fs.read", "shell.exec")
	open := gate(w, "gate")
	s := start(w, 60, 30)

	s.Type("what is in README.md?" + enter)
	s.See("ends, not in one.")
	s.Last(prompt)
	s.Type("/show 1" + enter)
	s.See("[lines 1-3 of 3]")
	s.Last(prompt)

	s.Type("日本x語\x1b[D\x7f\x05 é" + enter) // left, erase, to the end
	s.See("はい。")
	s.Last(prompt)

	s.Paste("first\nsecond \x1b[31m\n\tthird")
	s.See("third")
	s.Type("!" + enter)
	s.See("three lines")
	s.Last(prompt)

	s.Type("count to a million" + enter)
	s.See("writing")
	s.Type("half a sen" + ctrlC)
	s.See("cancelled")
	s.Last(prompt + " half a sen")
	s.Type("\x15") // erase the line
	s.Last(prompt)

	s.Type("take your time" + enter)
	s.See("shell.exec cat gate")
	s.Type("and now?" + enter)
	s.See("comes after this run's answer")
	s.Type("not that" + alt)
	s.See("the model is told next")
	open()
	s.See("Now it is done.")
	s.Last(prompt)
	s.Type("/nope" + enter)
	s.See("there is no /nope")
	s.Last(prompt)
	golden(t, s, "whole")
	s.Type("/quit" + enter)
	over(t, s, 0)
	if out := w.MustCtx("agent", "output", "m"); !strings.Contains(out, "Now it is done.") {
		t.Error(out)
	}
}
