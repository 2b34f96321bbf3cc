package mount

import (
	"strings"

	"cortexfs.org/libctx/linefile"
	"cortexfs.org/libctx/paths"
)

// places can not be the target of an extra mount, nor anything below them: they
// hold what the sandbox itself is made of.
var places = []string{
	"/bin", "/ctx", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32",
	"/proc", "/run", "/sbin", "/sys", "/usr", "/workspace",
}

// CheckTarget tests the target of an extra mount: absolute, clean, without
// control characters, not "/" and not at or below a place the sandbox itself
// uses. Errors are errdefs.Invalid.
func CheckTarget(target string) error {
	if err := linefile.CheckAbsolute(target); err != nil {
		return err
	}
	if why := reserved(target); why != "" {
		return linefile.Refuse(0, target, "%s", why)
	}
	return nil
}

func reserved(target string) string {
	if target == "/" {
		return "is reserved"
	}
	for _, p := range places {
		if paths.Below(target, p) {
			return "is reserved: nothing can be mounted at or below " + p
		}
	}
	return ""
}

// ParseFlag reads a mount as command lines spell it, SRC:DST:ro or SRC:DST:rw.
// Both paths are absolute and hold no colon. Errors are errdefs.Invalid.
func ParseFlag(s string) (Line, error) {
	f := strings.Split(s, ":")
	if len(f) != 3 {
		return Line{}, linefile.Refuse(0, s, "is not a mount: write SRC:DST:ro or SRC:DST:rw")
	}
	if err := linefile.CheckAbsolute(f[0]); err != nil {
		return Line{}, err
	}
	if err := CheckTarget(f[1]); err != nil {
		return Line{}, err
	}
	readOnly, ok := mode(f[2])
	if !ok {
		return Line{}, linefile.Refuse(0, f[2], "is not ro or rw")
	}
	return Line{Source: f[0], Target: f[1], ReadOnly: readOnly, Options: []string{"nosuid", "nodev"}}, nil
}
