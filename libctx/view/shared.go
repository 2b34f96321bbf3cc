package view

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// shared is one prepared directory that this process uses. While it does it
// holds a shared lock named by agent and key; who removes a directory holds the
// lock alone, so no process loses one it uses, and what a dead process left is
// recognised by its lock being free.
type shared struct {
	dir     string
	refs    int
	lock    *os.File
	current bool // the newest of its agent: kept for the next call
}

// registry is every prepared directory of this process, by host path. Its mutex
// is held while one is made, so that a process makes each once.
type registry struct {
	sync.Mutex
	all   map[string]*shared
	swept map[string]bool // directories of agents that were cleaned up
}

var views = registry{all: map[string]*shared{}, swept: map[string]bool{}}

func (r *registry) get(l paths.Layout, a libctx.Agent, key string) *shared {
	v := r.all[filepath.Join(l.View(a), key)]
	if v == nil {
		return nil
	}
	// Somebody with the right to may have removed it under us.
	if _, err := os.Lstat(v.dir); err != nil {
		delete(r.all, v.dir)
		v.lock.Close()
		return nil
	}
	return v
}

// first reports whether this is the first time the process works on an agent's
// views.
func (r *registry) first(l paths.Layout, a libctx.Agent) bool {
	dir := l.View(a)
	defer func() { r.swept[dir] = true }()
	return !r.swept[dir]
}

// add registers a directory as the current one of its agent.
func (r *registry) add(l paths.Layout, a libctx.Agent, key string, lock *os.File) *shared {
	v := &shared{dir: filepath.Join(l.View(a), key), lock: lock}
	r.all[v.dir] = v
	return v
}

// use counts one more user and makes the directory the current one.
func (r *registry) use(v *shared) {
	v.refs++
	if v.current {
		return
	}
	for _, old := range r.all {
		if filepath.Dir(old.dir) == filepath.Dir(v.dir) && old != v {
			old.current = false
			r.drop(old)
		}
	}
	v.current = true
}

func (r *registry) release(v *shared) {
	r.Lock()
	defer r.Unlock()
	v.refs--
	r.drop(v)
}

// drop removes a directory that is neither current nor used. Failing to is no
// error: the next process sweeps.
func (r *registry) drop(v *shared) {
	if v.current || v.refs > 0 || r.all[v.dir] != v {
		return
	}
	delete(r.all, v.dir)
	defer v.lock.Close()
	base, err := atomicfile.OpenDir(filepath.Dir(v.dir))
	if err != nil {
		return
	}
	defer base.Close()
	remove(base, filepath.Base(v.dir), v.lock)
}

// remove removes base/name and the lock file, unless another process uses it.
func remove(base *atomicfile.Dir, name string, lock *os.File) {
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	// A lock file that was removed before is nobody's lock any more.
	var st unix.Stat_t
	if unix.Fstat(int(lock.Fd()), &st) != nil || st.Nlink == 0 {
		return
	}
	if base.RemoveAll(name) == nil {
		os.Remove(lock.Name())
	}
}

// sweep removes what processes that are gone left in an agent's directory:
// prepared directories, and half made ones, which bear the key of what they
// were to become. The directory of the key keep is wanted now.
func sweep(l paths.Layout, a libctx.Agent, base *atomicfile.Dir, keep string) {
	all, err := names(base)
	if err != nil {
		return
	}
	for _, name := range all {
		if name == keep {
			continue
		}
		key, _, _ := strings.Cut(name, ".")
		lock, err := openLock(l, a, key)
		if err != nil {
			return
		}
		remove(base, name, lock)
		lock.Close()
	}
}

// lockView takes the shared lock of a key. The file may be removed by the last
// user just before; then the next one is taken.
func lockView(l paths.Layout, a libctx.Agent, key string) (*os.File, error) {
	for {
		f, err := openLock(l, a, key)
		if err != nil {
			return nil, err
		}
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Flock(int(f.Fd()), unix.LOCK_SH)
		}
		var st unix.Stat_t
		if err == nil {
			err = unix.Fstat(int(f.Fd()), &st)
		}
		switch {
		case err != nil:
			f.Close()
			return nil, errdefs.New(errdefs.IO, "lock %s: %w", f.Name(), err)
		case st.Nlink > 0:
			return f, nil
		}
		f.Close()
	}
}

func openLock(l paths.Layout, a libctx.Agent, key string) (*os.File, error) {
	if err := os.MkdirAll(l.Locks, 0o700); err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "%w", err)
	}
	name := filepath.Join(l.Locks, "view."+string(a)+"."+key)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "%w", err)
	}
	return f, nil
}

func selfUID() uint32 { return asuser.Self().UID }
