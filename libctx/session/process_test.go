package session

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// child names what a re-executed test binary does instead of testing.
const child = "CORTEXFS_SESSION_CHILD"

func TestMain(m *testing.M) {
	switch dir := os.Getenv(child + "_DIR"); os.Getenv(child) {
	case "":
		os.Exit(m.Run())
	case "hold":
		holdSession(dir)
	case "full":
		if err := fillSession(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

func start(t *testing.T, what, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+what, child+"_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, bufio.NewReader(out)
}

// holdSession opens a session, begins a call and waits to be killed.
func holdSession(dir string) {
	s, err := placeIn(dir).Open("default")
	if err == nil {
		run := libctx.NewRun()
		_, err = s.Commit(append(begin(s, run, "m", "q"), says(run, "", "c1"))...)
	}
	fmt.Println("ready", err)
	io.Copy(io.Discard, os.Stdin)
}

func TestKilledOwner(t *testing.T) {
	dir := t.TempDir()
	p := placeIn(dir)
	cmd, out := start(t, "hold", dir)
	if line, err := out.ReadString('\n'); line != "ready <nil>\n" {
		t.Fatalf("%q %v", line, err)
	}
	_, err := p.Open("default")
	wantKind(t, err, errdefs.Busy, "another process")
	if other := open(t, p, "other"); other.Room() != nil {
		t.Error("another session is held up")
	}
	if r, err := p.Read("default"); err != nil || history(r) != "q " {
		t.Errorf("reading beside the owner: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	s := open(t, p, "default") // at once
	if got := s.Settled(); len(got) != 1 || got[0].Call != "c1" {
		t.Errorf("settled %v", got)
	}
	turn(t, s, "m2", "q2", "a2")
	checkFiles(t, p, s, nil, true)
}

// Of many who reach for a session at once exactly one has it.
func TestManyWriters(t *testing.T) {
	p := place(t)
	const writers, rounds = 8, 20
	for n := range rounds {
		got := make(chan *Session, writers)
		for range writers {
			go func() {
				s, err := p.Open("default")
				if err != nil && !errdefs.Is(err, errdefs.Busy) {
					t.Error(err)
				}
				got <- s
			}()
		}
		var owner *Session
		for range writers {
			if s := <-got; s != nil && owner != nil {
				t.Fatal("two own it")
			} else if s != nil {
				owner = s
			}
		}
		if owner == nil {
			t.Fatal("nobody owns it")
		}
		turn(t, owner, libctx.ClientID(fmt.Sprint("m", n)), "q", "a")
		closeOf(t, owner)
	}
	s := open(t, p, "default")
	checkFiles(t, p, s, nil, true)
	if got := s.Info().Turns; got != rounds {
		t.Errorf("%d turns", got)
	}
}

// Runs of one session commit from their own goroutines while others read.
func TestManyRuns(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	turn(t, s, "m", "q", "a")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 10 {
				run := libctx.NewRun()
				for _, r := range []Record{beginTsh(run, libctx.ClientID(fmt.Sprintf("t-%d-%d", i, n))), tshCall(run, "c"), tshResult(run, "c"), done(run)} {
					if _, err := s.Commit(r); err != nil {
						t.Error(err)
						return
					}
				}
				off, err := s.FindRun(run)
				if err != nil {
					t.Error(err)
					return
				}
				if lines, _, err := s.ReadEvents(off, 1<<20); err != nil || len(lines) < 4 || !strings.Contains(string(lines[0]), string(run)) {
					t.Errorf("%d lines, %v", len(lines), err)
				}
				s.Info()
				s.Tip()
			}
		})
	}
	wg.Wait()
	checkFiles(t, p, s, nil, true)
	if got := s.Info(); got.State != StateDone || got.Turns != 1 {
		t.Errorf("info %+v", got)
	}
}

// fillSession commits until the file may not grow; what was acknowledged stays,
// nothing half written does, and the session opens once there is space.
func fillSession(dir string) error {
	signal.Ignore(unix.SIGXFSZ)
	p := placeIn(dir)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 50_000, Max: 1 << 30}); err != nil {
		return err
	}
	return full(p, func() error {
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 30, Max: 1 << 30})
	})
}

// full runs a session into a full disk and, after free, out of it again.
func full(p Place, free func() error) error {
	s, err := p.Open("default")
	if err != nil {
		return err
	}
	run := libctx.NewRun()
	if _, err := s.Commit(append(begin(s, run, "m", "q"), says(run, "", "c1"))...); err != nil {
		return err
	}
	ledger := filepath.Join(p.dir("default"), "messages.jsonl")
	var before []byte
	for n := 0; err == nil && n < 1000; n++ {
		if before, err = os.ReadFile(ledger); err != nil {
			return err
		}
		_, err = s.Commit(says(run, strings.Repeat("x", 7000)), says(run, strings.Repeat("y", 3000)))
	}
	if !errdefs.Is(err, errdefs.NoSpace) {
		return fmt.Errorf("the error is %v", err)
	}
	// If it was the log that did not fit, the ledger has the batch.
	after, err := os.ReadFile(ledger)
	if err != nil || !strings.HasPrefix(string(after), string(before)) || len(after) > 0 && after[len(after)-1] != '\n' {
		return fmt.Errorf("the ledger was cut or is torn: %d bytes, before %d, %v", len(after), len(before), err)
	}
	if _, again := s.Commit(done(run)); !errdefs.Is(again, errdefs.NoSpace) {
		return fmt.Errorf("a broken session says %v", again)
	}
	s.Close()
	if err := free(); err != nil {
		return err
	}
	if s, err = p.Open("default"); err != nil {
		return err
	}
	defer s.Close()
	if len(s.Settled()) != 1 || !strings.HasPrefix(content(ledger), string(after)) {
		return fmt.Errorf("settled %v", s.Settled())
	}
	want, err := freshFold([]byte(content(ledger)))
	if got := content(filepath.Join(p.dir("default"), "events.jsonl")); err != nil || got != want {
		return fmt.Errorf("events are %d bytes, the fold has %d (%v)", len(got), len(want), err)
	}
	return nil
}

func content(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestFileSizeLimit(t *testing.T) {
	dir := t.TempDir()
	cmd, out := start(t, "full", dir)
	said, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

// On a disk that is full. Only root can make one; for others the limit of the
// file's size, above, ends in the same error.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		TestFileSizeLimit(t)
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=320k"); err != nil {
		t.Fatalf("mount a tmpfs: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	p := placeIn(dir)
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 120<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := full(p, func() error { return os.Remove(ballast) }); err != nil {
		t.Error(err)
	}
	// A new session for which there is no room, and then is.
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	s := open(t, p, "new")
	_, err := s.Commit(begin(s, libctx.NewRun(), "m", "q")...)
	wantKind(t, err, errdefs.NoSpace)
	closeOf(t, s)
	os.Remove(ballast)
	s = open(t, p, "new")
	turn(t, s, "m", "q", "a")
	checkFiles(t, p, s, nil, true)
	closeOf(t, s)
	// Read-only: storage fails, nobody lacks a right.
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err = p.Open("new")
	wantKind(t, err, errdefs.IO, "read-only")
	if _, err := p.Read("new"); err != nil {
		t.Errorf("reading: %v", err)
	}
}

// A host of root serves an agent of somebody else: what it makes is theirs, and
// what they could not reach it does not reach.
func TestOwnerIsAnotherUser(t *testing.T) {
	owner := asuser.Self()
	dir := t.TempDir()
	p := placeIn(dir)
	if owner.UID == 0 {
		owner = asuser.Identity{UID: 60001, GID: 60001}
		home := filepath.Join(p.Layout.Root, "home", "60001")
		if err := os.MkdirAll(home, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(home, 60001, 60001); err != nil {
			t.Fatal(err)
		}
		for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.Owner = owner
	s := open(t, p, "default")
	turn(t, s, "m", "q", "a")
	closeOf(t, s)
	if err := p.SetCurrent("default"); err != nil {
		t.Fatal(err)
	}
	if infos, err := p.List(); err != nil || len(infos) != 1 || infos[0].Damage != "" {
		t.Errorf("%v %v", infos, err)
	}
	err := filepath.Walk(filepath.Join(p.Layout.Root, p.sessions()), func(path string, fi os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || st.Uid != owner.UID || st.Gid != owner.GID {
			t.Errorf("%s belongs to %d:%d (%v)", path, st.Uid, st.Gid, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return
	}
	// The owner's files, made root's, are out of reach.
	if err := os.Chown(p.dir("default")+"/messages.jsonl", 0, 0); err != nil {
		t.Fatal(err)
	}
	_, err = p.Open("default")
	wantKind(t, err, errdefs.Denied)
}
