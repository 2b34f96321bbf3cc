package script

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

func exitCode(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return strconv.Itoa(exit.ExitCode())
	}
	return err.Error()
}

// move puts a script's own files into its workspace.
func move(from, to string) error {
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if err == nil && e.Type().IsRegular() {
			err = os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		}
	}
	return err
}

func unescape(s string) string {
	return strings.NewReplacer(`\e`, "\x1b", `\r`, "\r", `\u202e`, "\u202e", `\x9b`, "\u009b").Replace(s)
}
