package bench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// sample is the durations of one thing done again and again.
type sample []time.Duration

// quantile is the duration that a share q of the sample does not exceed.
func (s sample) quantile(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (s sample) median() time.Duration { return s.quantile(0.5) }

// repeat times each of the functions n times, in turns, so that whatever else
// the machine does falls on all of them alike; warm rounds do not count. One
// that failed ends the benchmark: it was not measured.
func (s *suite) repeat(warm, n int, fns ...func()) []sample {
	s.Helper()
	all := make([]sample, len(fns))
	for round := range warm + n {
		for i, fn := range fns {
			begun := time.Now()
			fn()
			took := time.Since(begun)
			if s.Failed() {
				s.FailNow()
			}
			if round >= warm {
				all[i] = append(all[i], took)
			}
		}
	}
	return all
}

// table is what the benchmark prints: what was measured beside the floor that
// was measured in the same minute on the same machine.
type table struct{ rows [][]string }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// head begins a group of rows.
func (t *table) head(name string) { t.row(name, "", "", "", "", "", "") }

// times adds a row of durations.
func (t *table) times(name string, s, floor sample, what string) {
	m, f := s.median(), floor.median()
	p99 := ""
	if len(s) >= 50 {
		p99 = ms(s.quantile(0.99))
	}
	t.row("  "+name, ms(m), p99, ms(f), ratio(float64(m), float64(f)), fmt.Sprint(len(s)), what)
}

// figures adds a row of numbers of a unit; ratio is value/floor.
func (t *table) figures(name, unit string, value, floor float64, n int, what string) {
	number := func(v float64) string { return fmt.Sprintf("%.4g %s", v, unit) }
	t.row("  "+name, number(value), "", number(floor), ratio(value, floor), fmt.Sprint(n), what)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

func ratio(a, b float64) string { return fmt.Sprintf("%.2f×", a/b) }

func (t *table) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "measure\tp50\tp99\tfloor p50\tratio\truns\tfloor")
	for _, r := range t.rows {
		for i, cell := range r {
			if i > 0 {
				fmt.Fprint(tw, "\t")
			}
			fmt.Fprint(tw, cell)
		}
		fmt.Fprintln(tw)
	}
	tw.Flush()
}
