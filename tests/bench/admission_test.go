package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/effect"
	"cortexfs.org/libctx/policy"
	"cortexfs.org/libctx/view"
	"github.com/go-json-experiment/json/jsontext"
)

// admission measures what comes between a call and its sandbox, without the
// records: reading the agent and the tool, every stage, the digest of the intent.
func (s *suite) admission() {
	s.head("admission of one call, without start and records")
	file := filepath.Join(s.w.Layout.Control(agent), "policy")
	kept := s.w.Read(file)
	defer s.w.Write(file, kept)

	one := fmt.Sprintf("allow %s tool:fs.read execute\n", agent.Subject())
	rule := strings.ReplaceAll(one, "fs.read", "x")
	full := strings.Repeat(rule, (libctx.MaxControlFile-len(one))/len(rule)) + one
	call := admit.Call{Name: "fs.read", Arguments: jsontext.Value(`{"path":"README.md"}`), Direct: true}
	for _, text := range []string{one, full} {
		s.w.Write(file, text)
		got := s.repeat(20, 500, func() {
			a, err := view.Load(s.w.Layout, agent)
			s.must(err)
			t, err := a.Lookup(s.w.Layout, call.Name)
			s.must(err)
			defer t.Close()
			s.allowed(a.Facts(), t.Tool, call)
		}, func() { s.readAll(filepath.Dir(file), s.w.Root+"/tool/fs.read.d") })
		s.micros(fmt.Sprintf("policy of %d lines", strings.Count(text, "\n")), got[0], got[1], "read the files of agent and tool")
	}

	// No file holds as many; the stages alone, with everything read.
	a, err := view.Load(s.w.Layout, agent)
	s.must(err)
	t, err := a.Lookup(s.w.Layout, call.Name)
	s.must(err)
	defer t.Close()
	small, large := a.Facts(), a.Facts()
	parsed, err := policy.Parse([]byte(one))
	s.must(err)
	small.Policy = parsed
	large.Policy = policy.Policy{}
	for range 9_999 {
		r := parsed.Rules[0]
		r.Name = "x"
		large.Policy.Rules = append(large.Policy.Rules, r)
	}
	large.Policy.Rules = append(large.Policy.Rules, parsed.Rules...)
	got := s.repeat(20, 500, func() { s.allowed(large, t.Tool, call) }, func() { s.allowed(small, t.Tool, call) })
	s.micros("the stages alone, 10,000 lines", got[0], got[1], "the same, one line")
}

// allowed decides and digests.
func (s *suite) allowed(a admit.Agent, t admit.Tool, c admit.Call) {
	d := admit.Decide(a, t, c)
	if !d.Allowed {
		s.Errorf("%+v", d)
	}
	intent := effect.Intent{Principal: a.Subject, Tool: d.Name, Path: t.Path, Effect: d.Effect, Policy: a.Effects, Arguments: c.Arguments}
	if intent.Digest() == (effect.Digest{}) {
		s.Error("no digest")
	}
}

// readAll reads every file of some directories.
func (s *suite) readAll(dirs ...string) {
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		s.must(err)
		for _, e := range entries {
			if e.Type().IsRegular() {
				_, err := os.ReadFile(filepath.Join(dir, e.Name()))
				s.must(err)
			}
		}
	}
}

// micros adds a row of durations that are much below a millisecond.
func (t *table) micros(name string, s, floor sample, what string) {
	us := func(q sample, at float64) string { return fmt.Sprintf("%.1f µs", float64(q.quantile(at))/1e3) }
	t.row("  "+name, us(s, 0.5), us(s, 0.99), us(floor, 0.5), ratio(float64(s.median()), float64(floor.median())), fmt.Sprint(len(s)), what)
}
