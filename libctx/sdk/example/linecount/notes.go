package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx/sdk"
)

// notes is what the agent remembers from one step to the next.
type notes struct {
	found string   // what the listing said
	files []string // files still to try; the first is being read
}

// notesFile is one file for each session: a session has one run at a time.
func notesFile() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	session := os.Getenv("CTX_SESSION")
	if session == "" {
		session = "default"
	}
	return filepath.Join(cache, "linecount", session), nil
}

// remember replaces the notes. Their first line is the run, so that notes of an
// earlier run are never taken for this one's.
func remember(s *sdk.Step, n notes) error {
	file, err := notesFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	lines := append([]string{string(s.Run), n.found}, n.files...)
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600)
}

func recall(s *sdk.Step) (notes, error) {
	file, err := notesFile()
	if err != nil {
		return notes{}, err
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return notes{}, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 3 || lines[0] != string(s.Run) {
		return notes{}, errors.New("the notes of this run are gone")
	}
	return notes{found: lines[1], files: lines[2:]}, nil
}
