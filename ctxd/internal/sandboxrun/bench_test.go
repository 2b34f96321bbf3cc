package sandboxrun

import (
	"context"
	"os/exec"
	"testing"

	"cortexfs.org/libctx/sandbox"
)

// BenchmarkRun is a whole launch of the recipe with a payload that does nothing,
// beside the floor it stands on: run them together and compare.
func BenchmarkRun(b *testing.B) {
	b.Run("exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bwrap-one-bind", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/usr/bin/bwrap", "--bind", "/", "/", "/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	run := func(b *testing.B, w *world, s sandbox.Spec) {
		if _, err := w.l.Run(context.Background(), s, Stdio{}); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("launched", func(b *testing.B) {
		w := newWorld(b)
		w.l.spares.on = false
		s := w.spec("/bin/true")
		b.ResetTimer()
		for b.Loop() {
			run(b, w, s)
		}
	})
	b.Run("prepared", func(b *testing.B) { // the next call comes when its sandbox is there
		w := newWorld(b)
		s := w.spec("/bin/true")
		w.prepared(s)
		b.ResetTimer()
		for b.Loop() {
			run(b, w, s)
			b.StopTimer()
			if w.l.spare() == nil {
				b.Fatal("nothing was prepared")
			}
			b.StartTimer()
		}
	})
	b.Run("one-after-another", func(b *testing.B) { // the next call comes at once
		w := newWorld(b)
		s := w.spec("/bin/true")
		b.ResetTimer()
		for b.Loop() {
			run(b, w, s)
		}
	})
	b.Run("resolve-and-recipe", func(b *testing.B) {
		w := newWorld(b)
		b.ResetTimer()
		for b.Loop() {
			run(b, w, w.spec("/bin/true"))
		}
	})
}
