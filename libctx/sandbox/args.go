package sandbox

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/paths"
)

// Where things of the recipe are seen inside, besides the places of package
// paths.
const (
	InTools   = paths.InBin + "/ctxtool"
	InTsh     = paths.InBin + "/tsh"
	InCtxterm = paths.InBin + "/ctxterm"
	InSession = paths.InHome + "/session"
	InControl = "/run/cortexfs/control.sock"
	HostName  = "cortexfs"
)

// Host is what the recipe needs to know of the machine; it does not change while
// a launcher lives.
type Host struct {
	Roots   []Root   // /bin, /lib and the like, as far as they exist
	EtcDirs []string // directories shown read-only below /etc, as names relative to it
}

// Root is one of the top-level directories that lead into /usr on a merged
// system.
type Root struct {
	Path string // "/bin"
	Link string // where the link leads, "usr/bin"; "" if it is a directory of its own
}

// FDs are the descriptors of a launch, numbered as bwrap inherits them.
type FDs struct {
	Status  int    // bwrap writes its status records here
	Block   int    // bwrap waits until a byte can be read here
	Seccomp int    // holds the system call filter (package seccomp)
	Channel int    // the entry step gets its request here, and answers
	Files   []File // contents of small files
}

// File is a file whose content bwrap copies from a descriptor.
type File struct {
	FD   int
	Path string // inside path
}

// Args is bwrap's whole command line behind its name: Options, "--", Command.
func Args(s Spec, h Host, fd FDs) []string {
	return append(append(Options(s, h, fd), "--"), Command(s, fd)...)
}

// Options are bwrap's options. They hold host paths, so they are handed over by
// descriptor (--args) and never as a command line, which everybody on the
// machine can read. Nothing that Request holds is in them.
func Options(s Spec, h Host, fd FDs) []string {
	var a args
	// The user namespace always, even for root: it is what takes capabilities
	// from the payload and what --disable-userns needs.
	a.add("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
	if !s.Network {
		a.add("--unshare-net")
	}
	a.add("--disable-userns", "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--hostname", HostName)
	a.fd("--json-status-fd", fd.Status)
	a.fd("--block-fd", fd.Block)
	a.fd("--seccomp", fd.Seccomp)
	a.add("--clearenv")
	a.system(h, fd.Files)
	a.memory(s.Identity.UID == 0)
	a.tree(s)
	for _, m := range s.Mounts {
		a.bind(m.ReadOnly || ofProtected(s, m.Source), m.Source, m.Target)
	}
	a.workspace(s)
	// bwrap leaves these writable, up to half of the machine's memory each.
	a.add("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/")
	return a
}

// Command is what bwrap executes: the entry step.
func Command(s Spec, fd FDs) []string {
	e := Entry{Channel: fd.Channel, Limits: s.Limits.withDefaults()}
	return append([]string{InTools, "entry"}, e.Args()...)
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		at    *uint64
		value uint64
	}{
		{&l.Processes, libctx.SandboxProcesses},
		{&l.OpenFiles, libctx.SandboxOpenFiles},
		{&l.FileBytes, libctx.SandboxFileBytes},
	} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	return l
}

type args []string

func (a *args) add(words ...string) { *a = append(*a, words...) }

func (a *args) fd(option string, n int, more ...string) {
	a.add(option, strconv.Itoa(n))
	a.add(more...)
}

func (a *args) bind(readOnly bool, source, target string) {
	option := "--bind"
	if readOnly {
		option = "--ro-bind"
	}
	a.add(option, source, target)
}

// tmpfs makes a sized memory file system: --size and --perms count for the next
// --tmpfs only.
func (a *args) tmpfs(at string, bytes int, perms string) {
	a.add("--size", strconv.Itoa(bytes), "--perms", perms, "--tmpfs", at)
}

// system shows the host's programs and the few files of /etc they need.
func (a *args) system(h Host, files []File) {
	a.tmpfs("/", libctx.SandboxRootBytes, "0755")
	a.bind(true, "/usr", "/usr")
	for _, r := range h.Roots {
		if r.Link != "" {
			a.add("--symlink", r.Link, r.Path)
		} else {
			a.bind(true, r.Path, r.Path)
		}
	}
	a.add("--dir", "/etc", "--dir", "/var")
	// A bind costs more than the last one, a copied file next to nothing.
	for _, d := range h.EtcDirs {
		a.add("--ro-bind-try", "/etc/"+d, "/etc/"+d)
	}
	for _, f := range files {
		a.add("--perms", "0444")
		a.fd("--file", f.FD, f.Path)
	}
}

func (a *args) memory(root bool) {
	a.add("--proc", "/proc", "--dev", "/dev")
	if root {
		// Root's own files there are the settings of the machine's kernel, and
		// ownership is all that writing most of them takes.
		a.add("--remount-ro", "/proc")
	}
	// The first process is bubblewrap's, of the same user: a program that could
	// write to its memory would take from it that it ends with this daemon, and
	// with the program.
	for _, mem := range []string{"/proc/1/mem", "/proc/1/task/1/mem"} {
		a.bind(true, "/dev/null", mem)
	}
	a.tmpfs("/dev/shm", libctx.SandboxShmBytes, "1777")
	a.tmpfs("/tmp", libctx.SandboxTmpBytes, "1777")
	a.tmpfs("/run", libctx.SandboxRunBytes, "0755")
	a.add("--symlink", "../tmp", "/var/tmp")
}

// tree shows what belongs to the suite: the view, its programs, the home.
func (a *args) tree(s Spec) {
	if s.View != "" {
		a.bind(true, s.View, paths.InRoot)
	}
	for _, p := range []struct{ host, inside string }{{s.Tools, InTools}, {s.Tsh, InTsh}, {s.Ctxterm, InCtxterm}} {
		if p.host != "" {
			a.bind(true, p.host, p.inside)
		}
	}
	if s.Home != "" {
		a.bind(false, s.Home, paths.InHome)
		a.bind(true, s.Home+"/session", InSession)
	}
	if s.Control != "" {
		// A socket is connected to all the same; its mode, which is the host's, stays.
		a.bind(true, s.Control, InControl)
	}
}

func (a *args) workspace(s Spec) {
	if s.Workspace.Dir == "" {
		return
	}
	a.bind(s.Workspace.Frozen, s.Workspace.Dir, paths.InWorkspace)
	for _, b := range readOnly(s) {
		a.bind(true, b.Source, b.Target)
	}
	for _, l := range s.Workspace.Links {
		a.add("--symlink", l.Target, l.At)
	}
}

// readOnly are the protected objects of the workspace, wherever they are shown: a
// writable mount may hold them too. A repository elsewhere is left out if an extra
// mount takes its place: bwrap would make the mount point in the mounted
// directory, which is on the host.
func readOnly(s Spec) []Bind {
	var all []Bind
	for _, b := range s.Workspace.ReadOnly {
		if !taken(s.Mounts, b.Target) {
			all = append(all, b)
		}
		for _, m := range s.Mounts {
			if m.ReadOnly || !paths.Below(b.Source, m.Source) {
				continue
			}
			again := b
			again.Target = path.Join(m.Target, strings.TrimPrefix(b.Source, m.Source))
			others := slices.DeleteFunc(slices.Clone(s.Mounts), func(o mount.Line) bool { return o.Target == m.Target })
			if !taken(others, again.Target) {
				all = append(all, again)
			}
		}
	}
	return all
}

// ofProtected reports whether a host path is part of a protected object.
func ofProtected(s Spec, host string) bool {
	return slices.ContainsFunc(s.Workspace.ReadOnly, func(b Bind) bool { return paths.Below(host, b.Source) })
}

// taken reports whether an inside path is what a mount shows.
func taken(t mount.Table, inside string) bool {
	return slices.ContainsFunc(t, func(m mount.Line) bool { return paths.Below(inside, m.Target) })
}

// reserved are places that the recipe fills itself, with everything below them.
var reserved = []string{
	"/bin", "/ctx", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr",
	"/run/cortexfs", "/var/tmp", paths.InHome, paths.InWorkspace,
}

// Reserved reports whether nothing else may be shown at an inside path: the
// recipe fills it, or something below it.
func Reserved(inside string) bool {
	for _, r := range reserved {
		if paths.Below(inside, r) || paths.Below(r, inside) {
			return true
		}
	}
	return inside == "/tmp"
}
