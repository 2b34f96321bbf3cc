package changes

import (
	"path"
	"slices"
	"sync"
	"time"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// Ground is the workspace of a run as it was when the run was accepted, and as
// whom it is looked at.
type Ground struct {
	Workspace sandbox.Workspace // what is read-only in it can not be changed by the run
	Protect   []string          // paths that the agent's protect control keeps where they exist, relative to it
	Owner     asuser.Identity
}

// Reach is what a program can change in the workspace.
type Reach struct {
	Anything bool
	Path     string // else: this inside path and the directories on the way to it; "" is nothing
}

// Tracker knows the runs of one server that change workspaces. The zero value is
// ready.
type Tracker struct {
	mu   sync.Mutex
	busy map[node][]*Watch
}

// node is the identity of a file.
type node struct{ dev, ino uint64 }

// Watch collects what one run may have changed. A nil Watch takes everything and
// knows nothing. It is safe for several goroutines; End it once, when nothing of
// the run is left.
type Watch struct {
	tracker *Tracker
	ground  Ground
	beside  bool // guarded by the lock of the Tracker, which is never taken under the one below

	mu       sync.Mutex
	began    bool
	mark     mark
	anything bool
	exact    []string // relative to the workspace
}

// Watch makes the watch of a run.
func (t *Tracker) Watch(g Ground) *Watch { return &Watch{tracker: t, ground: g} }

func (w *Watch) key() node { return node{w.ground.Workspace.Dev, w.ground.Workspace.Ino} }

// Before takes note that a program is about to run that can change something. It is
// called when everything is ready and nothing of the program has run: what others
// change until then is not told.
func (w *Watch) Before(r Reach) {
	rel, in := below(r.Path)
	if w == nil || !r.Anything && !in {
		return
	}
	w.mu.Lock()
	first := !w.began
	if first {
		w.began, w.mark = true, now()
	}
	if w.anything = w.anything || r.Anything; in && !slices.Contains(w.exact, rel) {
		w.exact = append(w.exact, rel)
	}
	w.mu.Unlock()
	if first {
		w.tracker.join(w)
	}
}

// below is an inside path relative to the workspace.
func below(inside string) (rel string, ok bool) {
	inside = path.Clean(inside)
	if inside == paths.InWorkspace || !paths.Below(inside, paths.InWorkspace) {
		return "", false
	}
	return inside[len(paths.InWorkspace)+1:], true
}

// join counts a run among those that change its workspace. Whoever is there
// already can not be told from it.
func (t *Tracker) join(w *Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy == nil {
		t.busy = map[node][]*Watch{}
	}
	others := t.busy[w.key()]
	for _, o := range append(others, w) {
		o.beside = o.beside || len(others) > 0
	}
	t.busy[w.key()] = append(others, w)
}

// leave is the end of join. It reports whether others were there meanwhile.
func (t *Tracker) leave(w *Watch) (beside bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := slices.DeleteFunc(t.busy[w.key()], func(o *Watch) bool { return o == w })
	if t.busy[w.key()] = rest; len(rest) == 0 {
		delete(t.busy, w.key())
	}
	return w.beside
}

// End looks at the workspace and says what the run changed; nil is nothing. It
// takes libctx.WalkTime at most, as long as the file system answers.
func (w *Watch) End() *wire.Changes {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	began, mark, anything, exact := w.began, w.mark, w.anything, w.exact
	w.mu.Unlock()
	if !began {
		return nil
	}
	l := &look{ground: w.ground, mark: mark, found: map[string]*found{}, bare: map[string]bool{}}
	// What fails is told in the result: the run is over, whatever became of it.
	_ = w.ground.Owner.Do(func() error {
		l.look(anything, exact)
		return nil
	})
	if mark.set() {
		l.lacks(wire.ClockSet)
	}
	beside := w.tracker.leave(w)
	c := l.sum()
	if c == nil {
		return nil
	}
	c.Workspace, c.Exact, c.Beside = w.ground.Workspace.Dir, !anything, beside
	return c
}

// mark is a moment by the clock that files get their times from, and by one that
// nobody can set.
type mark struct {
	wall, boot time.Duration
}

// now is this moment. Times of files are those of the kernel's last tick.
func now() (m mark) {
	for range 100 {
		m = mark{read(unix.CLOCK_REALTIME_COARSE), read(unix.CLOCK_BOOTTIME)}
		if read(unix.CLOCK_BOOTTIME)-m.boot < skew/10 && read(unix.CLOCK_REALTIME_COARSE)-m.wall < skew/10 {
			break // else something else ran between the two
		}
	}
	return m
}

func read(clock int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0 // there are no such kernels; everything counts as changed
	}
	return time.Duration(ts.Nano())
}

// skew is how far the two clocks may drift apart without having been set.
const skew = 500 * time.Millisecond

// drift is how far the clock was set since the mark.
func (m mark) drift() time.Duration {
	n := now()
	return (n.wall - m.wall) - (n.boot - m.boot)
}

// set reports whether it was.
func (m mark) set() bool { return m.drift().Abs() > skew }

// since is the earliest time of a file that counts as changed since the mark, if
// it has fractions of a second, and if it has none: some file systems round down,
// to two seconds at worst.
func (m mark) since() (fine, coarse time.Duration) {
	if fine = m.wall; m.drift() < -skew {
		fine += m.drift() // where the mark would be by the clock as it is now
	}
	return fine, fine - 2*time.Second
}
