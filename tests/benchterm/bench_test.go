// Package benchterm measures terminals that outlive their windows: ctxterm
// beside tmux, screen and dtach, and a plain pseudo-terminal as the floor, all
// in one run. It holds no test: a time decides nothing.
package benchterm

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"text/tabwriter"

	"cortexfs.org/libctx"
	"cortexfs.org/tests/internal/world"
)

var (
	megabytes = flag.Int("mb", 200, "megabytes of output in each flood")
	keys      = flag.Int("keys", 2000, "keys whose echo is timed")
	grown     = flag.Int("grown", 1000, "megabytes after which memory is looked at")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		os.Exit(m.Run()) // nothing to measure: build nothing
	}
	world.Main(m)
}

// bench is what the measurements share.
type bench struct {
	*testing.B
	w    *world.World
	rows [][]string
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// row is a line of the table; who waits for it sees on standard error how far it is.
func (b *bench) row(cells ...string) {
	b.rows = append(b.rows, cells)
	fmt.Fprintln(os.Stderr, strings.Join(cells, "  "))
}

// BenchmarkTerminals runs everything once and prints one table.
func BenchmarkTerminals(tb *testing.B) {
	b := &bench{B: tb, w: world.New(tb)}
	b.floods()
	b.echoes()
	b.attaches()
	b.memory()
	fmt.Printf("\n%s %s/%s, %d CPUs, ctxterm %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), libctx.Version)
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range b.rows {
		for i, cell := range r {
			if i > 0 {
				fmt.Fprint(tw, "\t")
			}
			fmt.Fprint(tw, cell)
		}
		fmt.Fprintln(tw)
	}
	tw.Flush()
	fmt.Println()
	tb.ReportMetric(0, "ns/op") // the table is the result
}
