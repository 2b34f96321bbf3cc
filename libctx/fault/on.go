//go:build faults

package fault

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// setup is what CTX_FAULTS says. It is read once; a text that is wrong ends the
// process at the first point it comes to, so that no test believes in faults
// that never were.
var setup = sync.OnceValue(func() *plan {
	p, err := parse(os.Getenv("CTX_FAULTS"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "CTX_FAULTS:", err)
		unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	p.random = rand.New(rand.NewPCG(p.seed, uint64(os.Getpid())))
	return p
})

// Point kills the process if its time has come.
func Point(name string) {
	p := setup()
	if p.draw(name).kill {
		p.die(name)
	}
}

// Site is the name of a point that several steps share the code of.
type Site string

// At makes a Site of a name.
func At(name string) Site { return Site(name) }

// Write writes b to w, or only a part of it and then dies or fails.
func Write(at Site, w io.Writer, b []byte) (int, error) {
	name := string(at)
	p := setup()
	d := p.draw(name)
	if !d.kill && d.err == nil {
		return w.Write(b)
	}
	n, err := w.Write(b[:p.part(len(b))])
	if d.kill {
		p.die(name)
	}
	if err == nil {
		err = d.err
	}
	return n, err
}

// Fail is the error of a step that is refused.
func Fail(name string) error {
	p := setup()
	d := p.draw(name)
	if d.kill {
		p.die(name)
	}
	return d.err
}

// Off reports whether the one check of this name (GROUP:CHECK) is switched off, so that a test
// can see what it is there for.
func Off(name string) bool { return setup().off[name] }

// Now is the clock, as wrong as it is said to be.
func Now() time.Time {
	p := setup()
	shift := p.shift
	if p.jump > 0 {
		p.mu.Lock()
		shift += time.Duration(p.random.Int64N(int64(2*p.jump))) - p.jump
		p.mu.Unlock()
	}
	if shift == 0 {
		return time.Now()
	}
	return time.Now().Round(0).Add(shift) // without the monotonic reading, as after a real jump
}

// die leaves a line in the log and kills the process as nobody can catch it.
func (p *plan) die(name string) {
	if p.log != "" {
		if f, err := os.OpenFile(p.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666); err == nil {
			fmt.Fprintf(f, "%d %s\n", os.Getpid(), name)
		}
	}
	unix.Kill(os.Getpid(), unix.SIGKILL)
	select {} // the signal is on its way; nothing may happen until it is here
}
