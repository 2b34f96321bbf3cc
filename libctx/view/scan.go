package view

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// sources is what a view would be made of, as stat alone can tell.
type sources struct {
	key        string // names the view: equal for equal sources
	tools      []source
	control    print // of the agent's control files
	executable bool
}

// source is what a lookup of one name hits.
type source struct {
	dir   string // inside path
	name  libctx.Tool
	print print
	tool  *Tool // looked up before, or nil
}

func (s source) path() string { return s.dir + "/" + string(s.name) }

// format is the layout of a prepared directory; another one gets another key.
const format = 2

// boot is the id of this boot. Prepared directories are not synced, so one that
// an earlier boot left is not used.
var boot = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
})

// scan looks at every file that has a say in the view, and opens none.
func (a *Agent) scan(l paths.Layout, root *atomicfile.Dir, executable bool, checked []*Tool) (*sources, error) {
	s := &sources{executable: executable}
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %s %t\n", format, libctx.Version, boot(), executable)
	// The facts themselves are in the key: they were read before this, and
	// decide what is shown.
	fmt.Fprintf(h, "%q %q %v %v %q\n%q\n%q\n%q\n%q\n", a.Name, a.Subject, a.Owner, a.Perm, a.Path,
		a.Effects, a.Approval, a.Policy.Text(), a.Mounts.Text())

	err := a.withControl(l, root, func(d *atomicfile.Dir) error {
		files, err := list(d, ".", inView)
		s.control = fingerprint(files)
		return err
	})
	if err != nil {
		return nil, err
	}
	h.Write(s.control[:])

	var top []entry
	for _, rel := range a.single(executable) {
		if st, err := root.Lstat(rel); err == nil {
			top = append(top, entry{rel, st})
		}
	}
	sum := fingerprint(top)
	h.Write(sum[:])

	hit := map[libctx.Tool]bool{}
	for _, t := range checked {
		if t.Kind == admit.Regular {
			hit[t.Name] = true
			s.tools = append(s.tools, source{path.Dir(t.Path), t.Name, t.print, t})
		}
	}
	for _, dir := range a.Path {
		err := a.within(root, dir, func(d *atomicfile.Dir) error { return s.scanDir(d, dir, hit) })
		if err != nil && !passedOver(err) {
			return nil, errdefs.New(errdefs.KindOf(err), "%s: %w", dir, bare(err))
		}
	}
	slices.SortFunc(s.tools, func(x, y source) int { return strings.Compare(x.path(), y.path()) })
	for _, t := range s.tools {
		fmt.Fprintf(h, "%s %x\n", t.path(), t.print)
	}
	s.key = hex.EncodeToString(h.Sum(nil)[:16])
	return s, nil
}

// passedOver: a tool directory that is not there, or that the agent may not
// look into, holds no tools, as for a lookup.
func passedOver(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR)
}

// single are the files of the view that stand alone, relative to the root.
func (a *Agent) single(executable bool) []string {
	files := []string{"status"}
	if executable {
		files = append(files, "agent/"+string(a.Name))
	}
	return files
}

// inView are the agent's control files its sandboxes see. The runtime rewrites
// log, pid, status and meta.json while runs go on; a copy would be stale, and
// would make a new view each time.
func inView(file string) bool {
	return !slices.Contains([]string{"log", "pid", "status", "meta.json"}, file) && known(agentFiles, file)
}

var agentFiles = control.AgentFiles()

// scanDir adds the tools of one directory that no earlier one has.
func (s *sources) scanDir(d *atomicfile.Dir, dir string, hit map[libctx.Tool]bool) error {
	control := map[string]unix.Stat_t{}
	var files []entry
	all, err := list(d, ".", func(string) bool { return true })
	if err != nil {
		return err
	}
	for _, e := range all {
		if name, ok := strings.CutSuffix(e.name, ".d"); ok {
			control[name] = e.st
		} else if name, err := libctx.ParseTool(e.name); err == nil && isHit(&e.st) && !hit[name] {
			hit[name] = true
			files = append(files, e)
		}
	}
	for _, e := range files {
		seen := []entry{e}
		if st, ok := control[e.name]; ok {
			seen = append(seen, entry{e.name + ".d", st})
			// What can not be listed refuses the tool when it is loaded.
			more, _ := list(d, e.name+".d", shown(libctx.Tool(e.name)))
			seen = append(seen, more...)
		}
		s.tools = append(s.tools, source{dir, libctx.Tool(e.name), fingerprint(seen), nil})
	}
	return nil
}
