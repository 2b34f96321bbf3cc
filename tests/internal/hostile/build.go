// Package hostile is a world (package world) for attacks: an agent and a tool
// that attack, and worlds in which one check is switched off, where the same
// attack must succeed. So a test that finds an attack refused is known to have
// tried it.
package hostile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// switched are the programs that are built with the tag faults, in which checks
// can be switched off, and where their modules are.
var switched = map[string]string{"ctxd": "ctxd", "ctx": "ctx"}

// plain are the programs beside them, as they are.
var plain = []string{"ctxmodel", "ctxterm", "ctxtool", "intruder", "puppet", "tsh"}

// Faulty is a folder with the suite's programs, built such that checks can be
// switched off. It lies in the folder of the plain ones and goes with it.
func Faulty(t testing.TB) string {
	t.Helper()
	dir, err := faulty(world.Bin(t))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var once sync.Mutex

func faulty(bin string) (string, error) {
	once.Lock()
	defer once.Unlock()
	dir := filepath.Join(bin, "faults")
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	temp := dir + ".new"
	if err := os.Mkdir(temp, 0o755); err != nil {
		return "", err
	}
	root, err := filepath.Abs(top())
	if err != nil {
		return "", err
	}
	for program, module := range switched {
		cmd := exec.Command("go", "build", "-trimpath", "-tags=urfave_cli_no_docs,faults", "-o", filepath.Join(temp, program), ".")
		cmd.Dir = filepath.Join(root, module)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", errors.New(string(out))
		}
	}
	for _, name := range plain {
		if err := os.Link(filepath.Join(bin, name), filepath.Join(temp, name)); err != nil {
			return "", err
		}
	}
	return dir, os.Rename(temp, dir)
}

// top is the folder that holds go.work.
func top() string {
	dir := "."
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		dir = filepath.Join("..", dir)
	}
}
