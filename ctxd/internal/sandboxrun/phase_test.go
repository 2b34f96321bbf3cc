package sandboxrun

import (
	"context"
	"fmt"
	"sort"
	"testing"
	"time"

	"cortexfs.org/libctx/procid"
)

func TestPhase(t *testing.T) {
	w := newWorld(t)
	s := w.spec("/bin/true")
	phases := map[string][]time.Duration{}
	add := func(n string, d time.Duration) { phases[n] = append(phases[n], d) }
	for range 100 {
		t0 := time.Now()
		s2, _ := w.l.complete(s)
		add("1 complete", time.Since(t0))
		p, _ := w.l.prepare(s2, false)
		add("2 prepare", time.Since(t0))
		b := &box{}
		b.proc, _ = w.l.start(s2.Identity, p.argv, p.inside)
		add("3 start", time.Since(t0))
		p.handedOver()
		gate(context.Background(), p, b, Stdio{Started: func(procid.ID) error { add("4 record", time.Since(t0)); return nil }})
		add("5 open", time.Since(t0))
		started(p)
		add("6 handover", time.Since(t0))
		<-b.over
		add("7 over", time.Since(t0))
		b.close()
		p.close()
	}
	var names []string
	for n := range phases {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		d := phases[n]
		sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
		fmt.Println(n, d[len(d)/2])
	}
}
