package sandboxrun

import (
	"path/filepath"
	"strings"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// complete checks a spec and adds to it what the launcher knows: the entry
// program, and the objects the entry step must find.
func (l *Launcher) complete(s sandbox.Spec) (sandbox.Spec, error) {
	if s.Tools == "" {
		s.Tools = l.entry
	}
	if len(s.Argv) == 0 || !filepath.IsAbs(s.Argv[0]) {
		return s, errdefs.New(errdefs.Invalid, "sandbox: the payload has no absolute path")
	}
	if s.Cwd != "" && !filepath.IsAbs(s.Cwd) {
		return s, errdefs.New(errdefs.Invalid, "sandbox: start directory %q is not absolute", s.Cwd)
	}
	for _, kv := range s.Env {
		if strings.IndexByte(kv, '=') <= 0 {
			return s, errdefs.New(errdefs.Invalid, "sandbox: an environment entry has no name")
		}
	}
	if self := asuser.Self(); self.UID != 0 && !s.Identity.IsSelf() {
		return s, errdefs.New(errdefs.Denied, "sandbox: uid %d can not start programs of uid %d", self.UID, s.Identity.UID)
	}
	var expect []sandbox.Expect
	err := s.Identity.Do(func() (err error) {
		expect, err = lookAt(s)
		return err
	})
	s.Expect = append(append([]sandbox.Expect(nil), s.Expect...), expect...)
	return s, err
}

// lookAt notes what is to be shown at places that an agent could make lead
// elsewhere. It runs with the rights of the agent.
func lookAt(s sandbox.Spec) (expect []sandbox.Expect, err error) {
	type place struct{ host, inside string }
	var places []place
	if s.Home != "" {
		places = append(places, place{s.Home, paths.InHome}, place{s.Home + "/session", sandbox.InSession})
	}
	for _, m := range s.Mounts {
		places = append(places, place{m.Source, m.Target})
	}
	for _, p := range places {
		x, err := identify(p.host)
		if err != nil {
			return nil, err
		}
		expect = append(expect, sandbox.Expect{Path: p.inside, Dev: x.Dev, Ino: x.Ino})
	}
	return expect, nil
}

// identify finds an object by a path without symbolic links.
func identify(path string) (st unix.Stat_t, err error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err == nil {
		err = unix.Fstat(fd, &st)
		unix.Close(fd)
	}
	if err == unix.ELOOP {
		return st, errdefs.New(errdefs.Invalid, "sandbox: %s: leads through a symbolic link", path).
			WithHint("name the real path")
	}
	if err != nil {
		return st, errdefs.New(errdefs.KindOf(err), "sandbox: %s: %w", path, err)
	}
	return st, nil
}
