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
// program, and the objects the entry step must find. The others are the objects
// it shows besides.
func (l *Launcher) complete(s sandbox.Spec) (full sandbox.Spec, others []unix.Stat_t, err error) {
	if s.Tools == "" {
		s.Tools = l.entry
	}
	if len(s.Argv) == 0 || !filepath.IsAbs(s.Argv[0]) {
		return s, nil, errdefs.New(errdefs.Invalid, "sandbox: the payload has no absolute path")
	}
	if s.Cwd != "" && !filepath.IsAbs(s.Cwd) {
		return s, nil, errdefs.New(errdefs.Invalid, "sandbox: start directory %q is not absolute", s.Cwd)
	}
	for _, kv := range s.Env {
		if strings.IndexByte(kv, '=') <= 0 {
			return s, nil, errdefs.New(errdefs.Invalid, "sandbox: an environment entry has no name")
		}
	}
	if self := asuser.Self(); self.UID != 0 && !s.Identity.IsSelf() {
		return s, nil, errdefs.New(errdefs.Denied, "sandbox: uid %d can not start programs of uid %d", self.UID, s.Identity.UID)
	}
	var found objects
	err = s.Identity.Do(func() (err error) {
		found, err = lookAt(s)
		return err
	})
	s.Expect = append(append([]sandbox.Expect(nil), s.Expect...), found.expect...)
	return s, found.others, err
}

// objects are what a launch shows, by their identity at this moment.
type objects struct {
	expect []sandbox.Expect // what the entry step compares
	others []unix.Stat_t    // programs and the socket, which it need not
}

// lookAt notes what is to be shown at places that an agent could make lead
// elsewhere. It runs with the rights of the agent.
func lookAt(s sandbox.Spec) (found objects, err error) {
	type place struct {
		host, inside string
		readOnly     bool
	}
	var places []place
	if s.View != "" {
		places = append(places, place{s.View, paths.InRoot, true})
	}
	if s.Home != "" {
		places = append(places, place{s.Home, paths.InHome, false}, place{s.Home + "/session", sandbox.InSession, true})
	}
	for _, m := range s.Mounts {
		places = append(places, place{m.Source, m.Target, m.ReadOnly})
	}
	for _, p := range places {
		x, err := identify(p.host)
		if errdefs.Is(err, errdefs.NotFound) && p.inside == paths.InRoot {
			err = errdefs.New(errdefs.Unavailable, "%w", err) // no fault of the spec's
		}
		if err != nil {
			return found, err
		}
		found.expect = append(found.expect, sandbox.Expect{Path: p.inside, Dev: x.Dev, Ino: x.Ino, ReadOnly: p.readOnly})
	}
	for _, host := range []string{s.Tools, s.Tsh, s.Ctxterm, s.Control} {
		var st unix.Stat_t
		if host != "" {
			unix.Stat(host, &st) // bwrap says it if something is missing
		}
		found.others = append(found.others, st)
	}
	return found, nil
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
