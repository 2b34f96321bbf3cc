package changes

import (
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/libctx/workspace"
	"golang.org/x/sys/unix"
)

// look is one search of a workspace.
type look struct {
	ground       Ground
	mark         mark
	fine, coarse time.Duration
	root         int // open directory

	found   map[string]*found // by path relative to the workspace, "." the workspace itself
	bare    map[string]bool   // directories that git takes for a repository, whatever their name
	parents map[string]bool   // directories in which something was found, once asked
	lack    []string
	locked  bool // execute bits of this file system mean nothing
}

// found is one path that is not what it was.
type found struct {
	kind    string
	created bool
	exec    bool
}

// lacks says why the result is not complete.
func (l *look) lacks(why string) {
	if !slices.Contains(l.lack, why) {
		l.lack = append(l.lack, why)
	}
}

// look finds everything, or looks at the paths that are known.
func (l *look) look(everything bool, known []string) {
	l.fine, l.coarse = l.mark.since()
	fd, err := unix.Open(l.ground.Workspace.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		l.lacks(wire.Exchanged)
		return
	}
	defer unix.Close(fd)
	l.root = fd
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || uint64(st.Dev) != l.ground.Workspace.Dev || st.Ino != l.ground.Workspace.Ino {
		l.lacks(wire.Exchanged)
		return
	}
	readonly := l.system()
	for _, rel := range known {
		l.path(rel)
	}
	if everything && !readonly {
		l.walk()
	}
}

// system looks at the file system. Nothing is written on one that is read-only.
func (l *look) system() (readonly bool) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(l.root, &fs); err != nil {
		return false
	}
	kind := uint32(fs.Type)
	if slices.Contains(remote, kind) {
		l.lacks(wire.Remote)
	}
	l.locked = fs.Flags&unix.ST_NOEXEC != 0 || slices.Contains(modeless, kind)
	return fs.Flags&unix.ST_RDONLY != 0
}

// remote are file systems whose times may be those of another machine's clock.
var remote = []uint32{
	unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC, unix.V9FS_MAGIC,
	unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.CODA_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC,
	0x0bd00bd0, // lustre
	0x786f4256, // vboxsf
}

// modeless are file systems on which every file looks executable.
var modeless = []uint32{unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC, 0x5346544e, 0x7366746e} // the last two are NTFS

// path looks at one path that a tool says it changed, and at the directories that
// it may have made on the way.
func (l *look) path(rel string) {
	for i := 0; i <= len(rel); i++ {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		at := rel[:i]
		f, changed := l.entry(l.root, at)
		if f == nil {
			return
		}
		if i < len(rel) && f.kind != "dir" {
			return // no tool follows a link
		}
		if changed && (i == len(rel) || f.created) {
			l.found[at] = f
		}
		if f.kind == "dir" && l.repository(at) {
			l.bare[at] = true
		}
	}
}

// repository reports whether a directory looks like a repository to git.
func (l *look) repository(rel string) bool {
	for _, name := range repository {
		if f, _ := l.entry(l.root, rel+"/"+name); f == nil {
			return false
		}
	}
	return true
}

// repository is what git finds in a repository.
var repository = []string{"HEAD", "objects", "refs"}

// entry looks at one entry below an open directory. It is nil if there is none.
func (l *look) entry(dir int, name string) (f *found, changed bool) {
	var st unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE|unix.STATX_MODE|unix.STATX_CTIME|unix.STATX_BTIME, &st)
	if err != nil {
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
			l.lacks(wire.Closed)
		}
		return nil, false
	}
	f = &found{kind: kinds[st.Mode&unix.S_IFMT], created: st.Mask&unix.STATX_BTIME != 0 && l.since(st.Btime)}
	if f.kind == "" {
		f.kind = "other"
	}
	f.exec = f.kind == "file" && st.Mode&0o111 != 0 && !l.locked
	return f, l.since(st.Ctime)
}

var kinds = map[uint16]string{unix.S_IFREG: "file", unix.S_IFDIR: "dir", unix.S_IFLNK: "link"}

// since reports whether a time of a file is one of the run.
func (l *look) since(t unix.StatxTimestamp) bool {
	at := time.Duration(t.Sec)*time.Second + time.Duration(t.Nsec)
	return at >= l.fine || t.Nsec == 0 && at >= l.coarse
}

// walk looks at every entry of the workspace, those near the top first.
func (l *look) walk() {
	end := time.Now().Add(libctx.WalkTime)
	if f, changed := l.entry(l.root, "."); f != nil && changed {
		l.found["."] = f
	}
	left := libctx.MaxWalkEntries
	for todo := []string{"."}; len(todo) > 0; todo = todo[1:] {
		if !time.Now().Before(end) {
			l.lacks(wire.LongWalk)
			return
		}
		more, ok := l.directory(todo[0], &left, end)
		if !ok {
			return
		}
		todo = append(todo, more...)
	}
}

// directory looks at the entries of a directory, and lists the directories among
// them. It reports false when the search is over.
func (l *look) directory(rel string, left *int, end time.Time) (dirs []string, ok bool) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(l.root, rel, &how)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP): // exchanged meanwhile
		return nil, true
	case err != nil:
		l.lacks(wire.Closed)
		return nil, true
	}
	dir := os.NewFile(uintptr(fd), rel)
	defer dir.Close()
	if l.foreign(fd) {
		return nil, true
	}
	parts := 0
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if *left == 0 {
				l.lacks(wire.ManyEntries)
				return nil, false
			}
			*left--
			if slices.Contains(repository, name) {
				parts++
			}
			at := path.Join(rel, name)
			f, changed := l.entry(fd, name)
			if f == nil {
				continue
			}
			kept := rel == "." && l.kept(name)
			if changed && !(kept && f.kind == "dir") {
				l.found[at] = f
			}
			if f.kind == "dir" && !kept {
				dirs = append(dirs, at)
			}
		}
		if parts == len(repository) {
			l.bare[rel] = true
		}
		switch {
		case errors.Is(err, io.EOF):
			return dirs, true
		case err != nil:
			l.lacks(wire.Closed)
			return dirs, true
		case !time.Now().Before(end):
			l.lacks(wire.LongWalk)
			return nil, false
		}
	}
}

// foreign looks at a directory on another file system than the workspace's, which
// a sandbox shows with it. What the kernel makes up is no place where anything is
// left.
func (l *look) foreign(fd int) bool {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || uint64(st.Dev) == l.ground.Workspace.Dev {
		return err != nil
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil || workspace.MadeByKernel(fs) {
		return true
	}
	if slices.Contains(remote, uint32(fs.Type)) {
		l.lacks(wire.Remote)
	}
	return false
}

// kept reports whether an entry of the workspace is one that was read-only all the
// time.
func (l *look) kept(name string) bool {
	return slices.ContainsFunc(l.ground.Workspace.ReadOnly, func(b sandbox.Bind) bool {
		dir, base := path.Split(b.Source)
		var st unix.Stat_t
		return base == name && strings.TrimSuffix(dir, "/") == l.ground.Workspace.Dir &&
			unix.Fstatat(l.root, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && uint64(st.Dev) == b.Dev && st.Ino == b.Ino
	})
}
