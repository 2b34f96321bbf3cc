package checker

import (
	"fmt"
	"strings"
)

// keys are the words by which the executions of a call can be found: the second
// word of a call of the tool "mark", directly or through tsh.
func keys(name string, args object) []string {
	list, _ := args["args"].([]any)
	var words []string
	for _, w := range list {
		s, _ := w.(string)
		words = append(words, s)
	}
	if name == "tsh" && len(words) > 0 {
		name, words = words[0], words[1:]
	}
	if name == "mark" && len(words) > 0 {
		return words[:1]
	}
	return nil
}

// marks is the file of executions: a line a call, its key and its run.
type marks struct {
	path string
	runs map[string]string // key to run
	used map[string]bool
}

func readMarks(path string, r *Report) (*marks, error) {
	m := &marks{path: path, runs: map[string]string{}, used: map[string]bool{}}
	if path == "" {
		return m, nil
	}
	return m, eachLine(path, func(n int64, line []byte) error {
		r.Marks++
		where := fmt.Sprintf("%s:%d", path, n)
		key, run, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if !ok || !strings.HasSuffix(string(line), "\n") {
			r.add(where, Executions, "is no whole mark: %.100q", line)
		}
		if other, twice := m.runs[key]; twice {
			r.add(where, Executions, "call %s ran twice, in runs %s and %s", key, other, run)
		}
		m.runs[key] = run
		return nil
	})
}

// check compares the calls of a session with the marks they left.
func (m *marks) check(s *one) {
	for _, id := range s.order {
		for _, c := range s.runs[id].calls {
			for _, key := range c.keys {
				m.one(s, id, c, key)
			}
		}
	}
}

func (m *marks) one(s *one, id string, c *call, key string) {
	run, ran := m.runs[key]
	bad := func(format string, args ...any) {
		s.bad(c.seq, Executions, "call %s of run %s (%s): %s", c.id, id, key, fmt.Sprintf(format, args...))
	}
	if ran && run == id {
		m.used[key] = true
	}
	switch {
	case ran && run != id:
		bad("ran in run %s", run)
	case ran && !c.allowed:
		bad("ran without a recorded decision")
	case c.result == nil:
	case !ran && c.result.str("status") == "ok":
		bad("has a good result and never ran")
	case c.result.str("status") == "ok" && !strings.Contains(c.resultText, key):
		bad("has the result of something else: %.100q", c.resultText)
	}
}

// rest reports marks of calls that no ledger has.
func (m *marks) rest(r *Report) {
	for key, run := range m.runs {
		if !m.used[key] {
			r.add(m.path, Executions, "%s ran in run %s, which has no such call", key, run)
		}
	}
}
