// Package bench measures the suite's real programs and stores beside what the
// same work costs without them. It holds no test: a time decides nothing.
package bench

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/tests/internal/world"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		os.Exit(m.Run()) // nothing to measure: build nothing
	}
	world.Main(m)
}

// agent is the executable agent that everything is measured with.
const agent libctx.Agent = "echo"

// suite is what the groups of measurements share.
type suite struct {
	*testing.B
	*table
	w *world.World
}

// BenchmarkSuite runs everything once and prints one table.
func BenchmarkSuite(b *testing.B) {
	s := &suite{B: b, table: &table{}, w: world.New(b)}
	s.w.Puppet(string(agent), "fs.read")
	// Stores first: they are measured without any daemon.
	s.commits()
	s.ledgers()
	s.admission()
	s.starts()
	s.sends()
	s.tools()
	s.lengths()
	s.crowd()
	s.replays()
	s.memory()
	s.files()
	s.models()
	s.formats()
	s.deltas()
	fmt.Printf("\n%s %s/%s, %d CPUs, ctx %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), libctx.Version)
	s.print(os.Stdout)
	fmt.Println()
	b.ReportMetric(0, "ns/op") // the table is the result
}

// must ends the benchmark on an error: what could not run was not measured.
func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}
