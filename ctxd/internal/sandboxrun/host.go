package sandboxrun

import (
	"os"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// probeHost looks at what the recipe takes from the machine.
func probeHost() sandbox.Host {
	var h sandbox.Host
	for _, p := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if link, err := os.Readlink(p); err == nil {
			h.Roots = append(h.Roots, sandbox.Root{Path: p, Link: link})
		} else if isDir(p) {
			h.Roots = append(h.Roots, sandbox.Root{Path: p})
		}
	}
	// Configuration that interpreters, compilers and TLS libraries look for.
	for _, pattern := range []string{
		"ld.so.conf.d", "alternatives", "ssl/certs", "ca-certificates", "pki/tls/certs", "pki/ca-trust",
		"crypto-policies", "python3*", "perl", "java-*",
	} {
		found, _ := filepath.Glob("/etc/" + pattern) // the patterns are well-formed
		for _, p := range found {
			if isDir(p) {
				h.EtcDirs = append(h.EtcDirs, strings.TrimPrefix(p, "/etc/"))
			}
		}
	}
	// What models are pointed to; nothing else of that directory, which holds the
	// providers of the machine. Shown only if everybody may look there.
	if forEverybody(paths.InSkills) {
		h.EtcDirs = append(h.EtcDirs, strings.TrimPrefix(paths.InSkills, "/etc/"))
	}
	return h
}

// forEverybody reports whether everybody may look into a directory, and get there
// from the one above it. Neither is a link.
func forEverybody(dir string) bool {
	may := func(path string, bits os.FileMode) bool {
		st, err := os.Lstat(path)
		return err == nil && st.IsDir() && st.Mode().Perm()&bits == bits
	}
	return may(filepath.Dir(dir), 0o001) && may(dir, 0o005)
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// maxCopied bounds a file of /etc that is copied into sandboxes, in bytes.
const maxCopied = 1 << 20

// openCopied opens a file of /etc for copying. It is nil if there is none, or
// none that everybody may read: the launcher may be root, the payload is not.
func openCopied(path string) (*os.File, unix.Stat_t) {
	var st unix.Stat_t
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, st
	}
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o004 == 0 || st.Size > maxCopied {
		unix.Close(fd)
		return nil, st
	}
	return os.NewFile(uintptr(fd), path), st
}
