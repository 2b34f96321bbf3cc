package checker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// inline is the longest text member of a frame, in bytes; frame the longest
// frame.
const (
	inline   = 64 << 10
	maxFrame = 1 << 20
	maxParts = 256
)

// fold is the frames of a record, as docs/reference/session.md says, with their
// ids. Texts are whole; same knows how they may be cut.
func fold(rec object, r *run) []object {
	frames := framesOf(rec, r)
	for _, f := range frames {
		r.frames++
		f["id"], f["run"] = fmt.Sprintf("%s.%d", r.id, r.frames), r.id
	}
	return frames
}

func framesOf(rec object, r *run) []object {
	number := func(name string) json.Number {
		n, _ := rec[name].(json.Number)
		if n == "" {
			n = "0"
		}
		return n
	}
	switch rec.str("type") {
	case "fact":
		f := object{}
		for k, v := range rec.object("frame") {
			f[k] = v
		}
		return []object{f}
	case "usage":
		f := object{"type": "usage", "input_tokens": number("input"), "output_tokens": number("output")}
		for to, from := range map[string]string{"cached_tokens": "cache_read", "cache_write_tokens": "cache_write"} {
			if n := number(from); n != "0" {
				f[to] = n
			}
		}
		return []object{f}
	case "usage_uncertain":
		f := object{"type": "usage_uncertain", "kind": rec["kind"], "model": rec["model"]}
		if why := rec.str("reason"); why != "" {
			f["reason"] = why
		}
		return []object{f}
	case "checkpoint":
		return ends(rec)
	}
	if rec.str("kind") != "message" {
		return nil
	}
	switch rec.str("role") {
	case "assistant":
		return said(rec)
	case "tool":
		return results(rec, r)
	}
	return nil
}

func ends(rec object) []object {
	outcome := rec.str("outcome")
	status := map[string]string{"completed": "ok", "cancelled": "cancelled"}[outcome]
	if status != "" {
		return []object{{"type": "done", "status": status}}
	}
	code, message := rec.str("code"), rec.str("message")
	if standard := map[string]string{"max_turns": "E2BIG", "interrupted": "EINTR", "failed": "EFAULT"}[outcome]; code == "" || outcome == "interrupted" {
		code = standard
	}
	if message == "" {
		message = "the run ended: " + outcome
	}
	return []object{{"type": "error", "code": code, "message": message}, {"type": "done", "status": "error"}}
}

func said(rec object) []object {
	frames := append(spoken(rec, "reasoning_message", "reasoning"), spoken(rec, "message", "text")...)
	for _, p := range rec.objects("content") {
		if p.str("type") != "tool_call" {
			continue
		}
		args := p["arguments"]
		if args == nil {
			args = map[string]any{}
		}
		frames = append(frames, object{"type": "tool_call", "call": p["call"], "name": p["name"], "arguments": args})
	}
	return frames
}

// spoken is the frame of the parts of one type.
func spoken(rec object, kind, of string) []object {
	var parts []any
	whole := ""
	for _, p := range rec.objects("content") {
		if p.str("type") == of {
			parts = append(parts, map[string]any(p))
			whole += p.str("text")
		}
	}
	if len(parts) == 0 {
		return nil
	}
	if len(parts) > maxParts || len(whole) > inline {
		parts = []any{map[string]any{"type": of, "text": whole}}
	}
	return []object{{"type": kind, "role": "assistant", "content": parts}}
}

func results(rec object, r *run) []object {
	var frames []object
	for _, p := range rec.objects("content") {
		if p.str("type") != "tool_result" {
			continue
		}
		name := p.str("name")
		if c := r.find(p.str("call")); name == "" && c != nil {
			name = c.name
		}
		cut, _ := p["truncated"].(bool)
		f := object{"type": "tool_result", "call": p["call"], "name": name, "status": p["status"], "content": p.str("text"),
			"truncated": cut, "duration_ms": json.Number("0")}
		for _, k := range []string{"exit_code", "duration_ms"} {
			if n, ok := p[k]; ok {
				f[k] = n
			}
		}
		frames = append(frames, f)
	}
	return frames
}

// same compares a line of the event log with the frame it has to be. The
// difference is "" if there is none.
func same(want, got object) string {
	if text, err := json.Marshal(want); err == nil && len(text) > maxFrame && len(got) == 5 && got["truncated"] == true {
		return ""
	}
	whole := int64(0) // the longest text that had to be cut
	for name := range want {
		var n int
		switch name {
		case "content":
			if list, ok := want[name].([]any); ok {
				n = sameParts(list, got[name])
				break
			}
			n = sameValue(want[name], got[name])
		default:
			n = sameValue(want[name], got[name])
		}
		switch {
		case n < 0 && name == "truncated" && got[name] == true: // judged below
		case n < 0 && name == "bytes":
		case n < 0:
			return fmt.Sprintf("%s is %.200s, not %.200s", name, show(got[name]), show(want[name]))
		}
		whole = max(whole, int64(n))
	}
	for name := range got {
		if _, ok := want[name]; !ok && name != "truncated" && name != "bytes" {
			return "has a member " + name
		}
	}
	wasCut, _ := want["truncated"].(bool)
	if isCut, _ := got["truncated"].(bool); isCut != (wasCut || whole > 0) {
		return fmt.Sprintf("truncated is %v", got["truncated"])
	}
	if whole > 0 && got.int("bytes") != whole {
		return fmt.Sprintf("bytes is %v, not %d", got["bytes"], whole)
	}
	return ""
}

// sameValue returns 0 if both are equal, the number of bytes of want if got is
// want cut to the inline limit, and -1 if they differ.
func sameValue(want, got any) int {
	if reflect.DeepEqual(want, got) {
		return 0
	}
	if w, ok := want.(string); ok {
		if g, ok := got.(string); ok && isCut(w, g) {
			return len(w)
		}
		return -1
	}
	// Long arguments: {"clipped":"…"} of their text.
	g, ok := got.(map[string]any)
	if !ok || len(g) != 1 {
		return -1
	}
	clipped, ok := g["clipped"].(string)
	text := compact(want)
	if !ok || len(text) <= inline || len(clipped) > inline {
		return -1
	}
	var n int
	if at := strings.Index(clipped, "\n[… "); at > 0 {
		fmt.Sscanf(clipped[at:], "\n[… %d bytes", &n)
	}
	return max(n, 1)
}

// sameParts compares the text parts of a message.
func sameParts(want []any, got any) int {
	if reflect.DeepEqual(any(want), got) {
		return 0
	}
	list, ok := got.([]any)
	if !ok || len(want) != 1 || len(list) != 1 {
		return -1
	}
	w, _ := want[0].(map[string]any)
	g, _ := list[0].(map[string]any)
	return sameValue(w["text"], g["text"])
}

// isCut reports whether short is what is left of a long text: its head, a line
// that says its size, and its tail.
func isCut(long, short string) bool {
	if len(long) <= inline || len(short) > inline || !utf8.ValidString(short) {
		return false
	}
	note := fmt.Sprintf("\n[… %d bytes in all, middle left out …]\n", len(long))
	head, tail, ok := strings.Cut(short, note)
	return ok && strings.HasPrefix(long, head) && strings.HasSuffix(long, tail) && len(head) > inline/2 && len(tail) > inline/4
}

func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

func show(v any) string { return compact(v) }

// compare reads the event log beside the fold.
func (s *one) compare() error {
	s.sums = map[string]sum{}
	at := 0
	bad := func(n int64, format string, args ...any) {
		s.report.add(fmt.Sprintf("%s/events.jsonl:%d", s.dir, n), Events, format, args...)
	}
	failed := false
	err := eachLine(s.dir+"/events.jsonl", func(n int64, line []byte) error {
		s.report.Events++
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		got, err := parse(text)
		switch {
		case failed:
			return nil
		case !whole:
			bad(n, "ends in the middle of a line")
			return nil
		case err != nil:
			bad(n, "%v", err)
			failed = true
			return nil
		}
		id := got.str("id")
		if _, twice := s.sums[id]; twice {
			bad(n, "frame %s comes twice", id)
		}
		s.sums[id] = sumOf(text)
		if at >= len(s.frames) {
			bad(n, "a frame %s that the ledger has no record of", id)
			failed = true
			return nil
		}
		if diff := same(s.frames[at], got); diff != "" {
			bad(n, "%s", diff)
			failed = true // what follows is shifted
		}
		at++
		return nil
	})
	if err != nil {
		return err
	}
	if at < len(s.frames) && !s.open && !failed {
		bad(int64(at+1), "ends before frame %v", s.frames[at]["id"])
	}
	s.frames = nil
	return nil
}
