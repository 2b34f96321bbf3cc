package sandboxrun

import (
	"context"
	"os/exec"
	"testing"
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
	b.Run("recipe", func(b *testing.B) {
		w := newWorld(b)
		s := w.spec("/bin/true")
		b.ResetTimer()
		for b.Loop() {
			if _, err := w.l.Run(context.Background(), s, Stdio{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("resolve-and-recipe", func(b *testing.B) {
		w := newWorld(b)
		b.ResetTimer()
		for b.Loop() {
			if _, err := w.l.Run(context.Background(), w.spec("/bin/true"), Stdio{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
