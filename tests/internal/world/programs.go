package world

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// programs copies the suite's programs into a folder of their own, once for a
// test binary: what a test does to them is nobody else's business.
var programs = sync.OnceValues(func() (string, error) {
	built, err := build()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "ctx-bin-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(built)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Name() == lockName {
			continue
		}
		if err := copyProgram(filepath.Join(built, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return "", err
		}
	}
	return dir, nil
})

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

const lockName = ".lock"

// build brings the programs up to date in a folder that all test binaries of
// this checkout and user share, so that only the first one waits for the linker:
// go build leaves alone what is up to date.
func build() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("ctx-programs-%d-%.6x", os.Geteuid(), sha256.Sum256([]byte(root))))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil || st.Mode != unix.S_IFDIR|0o700 || int(st.Uid) != os.Geteuid() {
		return "", fmt.Errorf("%s is not a private folder of this user (%v)", dir, err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", err
	}
	for module, packages := range map[string][]string{
		"ctx": {"."}, "ctxd": {".", "./cmd/ctxmodel"}, "ctxterm": {"."}, "tsh": {".", "./cmd/ctxtool"},
		"tests": {"./cmd/puppet", "./cmd/flood", "./cmd/intruder"}, "libctx": {"./sdk/example/linecount"},
	} {
		cmd := exec.Command("go", append([]string{"build", "-trimpath", "-o", dir + "/"}, packages...)...)
		cmd.Dir = filepath.Join(root, module)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %s", module, out)
		}
	}
	return dir, nil
}

// moduleRoot is the folder that holds go.work.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.New("no go.work above " + dir)
}

// Bin is the folder of the built programs; Main removes it after all tests.
func Bin(t testing.TB) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Main runs a package's tests and cleans up what they share.
func Main(m *testing.M) {
	code := m.Run()
	if dir, err := programs(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}
