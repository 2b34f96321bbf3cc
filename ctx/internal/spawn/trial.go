package spawn

import (
	"context"
	"os/exec"
	"strings"
	"syscall"

	"cortexfs.org/libctx/errdefs"
)

// Trial runs a program to its end with an empty environment, no input and no
// terminal, and returns what it printed, both streams together. A program that
// fails is errdefs.Unavailable with its last line.
func Trial(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		why := err.Error()
		if text != "" {
			why = text[strings.LastIndexByte(text, '\n')+1:]
		}
		return text, errdefs.New(errdefs.Unavailable, "%s: %s", program, why)
	}
	return text, nil
}
