package hostile

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/tests/internal/world"
)

// Race is a race for the directories of sessions of a user, who lets them and
// links that lead elsewhere change places all the while. The test's process keeps
// the sessions, as ctxd does: it makes, opens, appends to, renames and removes
// what is in them.
type Race struct {
	t      testing.TB
	place  session.Place
	dir    string
	victim string
	n      int
	Done   int // rounds that came through
}

// NewRace makes the directories, in memory if there is a file system for that. A
// process of root races with the user of that uid.
func NewRace(t testing.TB, uid uint32) *Race {
	t.Helper()
	base := "/dev/shm"
	if st, err := os.Stat(base); err != nil || st.Mode().Perm() != 0o777 {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, "race")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &Race{t: t, dir: dir, victim: dir + "/victim", place: session.Place{
		Layout: paths.Layout{Root: dir + "/tree", Runtime: dir + "/run", Locks: dir + "/run/lock"},
		Agent:  "a", Owner: asuser.Identity{UID: uid, GID: uid},
	}}
	must(t, os.Chmod(dir, 0o755))
	own := func(path string, perm os.FileMode) {
		must(t, os.MkdirAll(path, 0o755))
		must(t, os.Chmod(path, perm))
		if os.Geteuid() == 0 {
			must(t, os.Chown(path, int(uid), int(uid)))
		}
	}
	for _, path := range []string{"tree", "run", "run/lock"} {
		must(t, os.MkdirAll(dir+"/"+path, 0o755))
	}
	own(dir+"/tree/home/"+strconv.Itoa(int(uid)), 0o700)
	own(r.home(), 0o700)
	own(r.home()+"/session", 0o700)
	// Where a link leads everybody may write: that it must not be followed is all
	// that protects it.
	must(t, os.Mkdir(r.victim, 0o777))
	must(t, os.Chmod(r.victim, 0o777))
	for _, name := range []string{"messages.jsonl", "events.jsonl", "state", "latest.md"} {
		must(t, os.WriteFile(r.victim+"/"+name, []byte("keep\n"), 0o666))
		must(t, os.Chmod(r.victim+"/"+name, 0o666))
	}
	must(t, os.Mkdir(r.victim+"/context", 0o777))
	must(t, os.Chmod(r.victim+"/context", 0o777))
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *Race) home() string {
	return filepath.Join(r.place.Layout.Root, "home", strconv.Itoa(int(r.place.Owner.UID)), "agent", "a")
}

// Attack lets a directory of the home and a link to the victim change places
// until stop, which says how often they did.
func (r *Race) Attack(rel string) (stop func() int) {
	r.t.Helper()
	at, link := filepath.Join(r.home(), rel), filepath.Join(r.home(), "link-of-"+filepath.Base(rel))
	if _, err := os.Lstat(at); err != nil {
		must(r.t, os.Mkdir(at, 0o700))
		must(r.t, os.Lchown(at, int(r.place.Owner.UID), int(r.place.Owner.GID)))
	}
	must(r.t, os.Symlink(r.victim, link))
	cmd := exec.Command(filepath.Join(world.Bin(r.t), "intruder"), "exchange", at, link)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: r.place.Owner.UID, Gid: r.place.Owner.GID}}
	}
	in, err := cmd.StdinPipe()
	must(r.t, err)
	out, err := cmd.StdoutPipe()
	must(r.t, err)
	must(r.t, cmd.Start())
	ready := make([]byte, len("ready\n"))
	if _, err := out.Read(ready); err != nil || string(ready) != "ready\n" {
		r.t.Fatalf("%q, %v", ready, err)
	}
	return func() int {
		in.Close()
		said := make([]byte, 64)
		n, _ := out.Read(said)
		cmd.Wait()
		must(r.t, os.Remove(link))
		swaps, _ := strconv.Atoi(strings.TrimSpace(string(said[:n])))
		return swaps
	}
}

// Round keeps one run in a session, as far as it gets.
func (r *Race) Round(name libctx.Session) {
	r.n++
	s, err := r.place.Open(name)
	if err != nil {
		return
	}
	defer s.Close()
	run := libctx.NewRun()
	_, err = s.Commit(&session.Fact{Run: run, Payload: "p", Frame: &wire.Start{
		Head: wire.Head{Type: "start"}, Session: name, Agent: "a", ClientID: libctx.ClientID(fmt.Sprint("m", r.n)), Op: "tsh", Scope: "private",
	}})
	if err == nil {
		r.Done++
	}
}

// Harm is what is not in the victim as it was.
func (r *Race) Harm() (harm []string) {
	r.t.Helper()
	var all []string
	err := filepath.WalkDir(r.victim, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		all = append(all, d.Name())
		if st := i.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() || i.Mode().Perm()&0o666 != 0o666 {
			harm = append(harm, fmt.Sprint(path, " ", i.Mode(), " of ", st.Uid))
		}
		if !d.IsDir() {
			if text, err := os.ReadFile(path); err != nil || string(text) != "keep\n" {
				harm = append(harm, fmt.Sprintf("%s holds %.60q", path, text))
			}
		}
		return nil
	})
	must(r.t, err)
	if got := strings.Join(all, " "); got != "victim context events.jsonl latest.md messages.jsonl state" {
		harm = append(harm, "it holds "+got)
	}
	return harm
}

// Run races for the directory of one session and for that of all of them, so many
// rounds each, half of them with a new session, and fails the test if anything came
// out where a link led.
func (r *Race) Run(rounds int) {
	r.t.Helper()
	for _, rel := range []string{"session/s", "session"} {
		r.Done = 0
		stop := r.Attack(rel)
		i := 0
		for began := time.Now(); i < rounds || r.Done == 0 && time.Since(began) < world.Patience; i++ {
			name := libctx.Session("s")
			if i%2 == 1 {
				name = libctx.Session(fmt.Sprint("s", i))
			}
			r.Round(name)
		}
		swaps := stop()
		r.t.Logf("%s: %d rounds, %d came through, %d swaps", rel, i, r.Done, swaps)
		if r.Done == 0 || r.Done == i || swaps == 0 {
			r.t.Error("there was no race")
		}
	}
	if harm := r.Harm(); len(harm) > 0 {
		r.t.Error(harm)
	}
}
