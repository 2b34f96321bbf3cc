package doctor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/builtin"
	"cortexfs.org/libctx/builtin/program"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/view"
	"golang.org/x/sys/unix"
)

// checkTree looks at the directories of the tree: there, of one owner, not
// writable by others.
func checkTree(_ context.Context, from *caller.Caller) []Finding {
	l := from.Layout
	if !paths.IsTree(l.Root) {
		return []Finding{{"tree", broken, l.Root + " is not a tree", "ctx init"}}
	}
	all := good("tree", l.Root)
	private := filepath.Join(l.Root, "home", fmt.Sprint(os.Geteuid()))
	for _, dir := range []string{l.Root, l.Agents(), l.Tools(), l.Bin(""), filepath.Join(l.Root, "model"),
		filepath.Join(l.Root, "home"), filepath.Join(l.Root, "shared"), private} {
		var st unix.Stat_t
		err := unix.Lstat(dir, &st)
		switch {
		case err != nil && dir == private:
			continue // made with the first agent of this user
		case err != nil:
			all = append(all, Finding{"tree", broken, fmt.Sprintf("%s: %v", dir, err), "ctx init"})
		case st.Mode&unix.S_IFMT != unix.S_IFDIR:
			all = append(all, Finding{"tree", broken, dir + " is not a directory", "remove it, then ctx init"})
		case st.Uid != 0 && int(st.Uid) != os.Geteuid():
			all = append(all, Finding{"tree", broken, fmt.Sprintf("%s belongs to uid %d", dir, st.Uid), "chown it"})
		case st.Mode&0o022 != 0:
			all = append(all, Finding{"tree", broken, fmt.Sprintf("%s can be written by others (mode %04o)", dir, st.Mode&0o7777), "chmod go-w " + dir})
		case dir == private && st.Mode&0o077 != 0:
			all = append(all, Finding{"tree", broken, fmt.Sprintf("%s can be read by others (mode %04o)", dir, st.Mode&0o7777), "chmod 0700 " + dir})
		}
	}
	return all
}

// checkTools compares the built-in tools with what this version would write.
func checkTools(_ context.Context, from *caller.Caller) []Finding {
	dir, err := atomicfile.OpenDir(from.Layout.Tools())
	if err != nil {
		return bad("tools", err, "ctx init")
	}
	defer dir.Close()
	changed, there := 0, 0
	for _, t := range builtin.Tools() {
		if !program.Offered(t.Name) {
			continue
		}
		there++
		for name, want := range t.Files() {
			rel := string(t.Name)
			if name != "" {
				rel = filepath.Join(rel+".d", name)
			}
			if have, err := dir.ReadFile(rel, libctx.MaxControlFile); err != nil || !bytes.Equal(have, want) {
				changed++
			}
		}
	}
	if changed > 0 {
		return []Finding{{"tools", warn, fmt.Sprintf("%d files of built-in tools are missing or changed", changed), "ctx init"}}
	}
	return good("tools", fmt.Sprintf("%d built-in tools", there))
}

// checkAgents reads every agent as the runtime would.
func checkAgents(_ context.Context, from *caller.Caller) []Finding {
	agents, err := tree.ListAgents(from.Layout)
	if errdefs.Is(err, errdefs.NotFound) {
		return nil // there is no tree, which was said
	}
	if err != nil {
		return bad("agents", err, "")
	}
	var all []Finding
	for _, a := range agents {
		if !mine(from.Layout, a) {
			continue
		}
		if _, err := view.Load(from.Layout, a); err != nil {
			remedy := errdefs.HintOf(err)
			if remedy == "" {
				remedy = "ctx policy check " + string(a)
			}
			all = append(all, bad("agents", err, remedy)...)
		}
	}
	if len(all) == 0 {
		return good("agents", fmt.Sprintf("%d, none refused", len(agents)))
	}
	return all
}

// checkRuntime looks at the directory of the sockets.
func checkRuntime(_ context.Context, from *caller.Caller) []Finding {
	dir := from.Layout.Runtime
	var st unix.Stat_t
	err := unix.Lstat(dir, &st)
	switch {
	case errdefs.Is(err, errdefs.NotFound):
		return good("runtime", dir+" will be made when it is needed")
	case err != nil:
		return bad("runtime", err, "")
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return []Finding{{"runtime", broken, dir + " is not a directory", "remove it"}}
	case int(st.Uid) != os.Geteuid() && st.Uid != 0:
		return []Finding{{"runtime", broken, fmt.Sprintf("%s belongs to uid %d", dir, st.Uid), "set XDG_RUNTIME_DIR to a directory of yours"}}
	case !from.Layout.System && st.Mode&0o077 != 0:
		return []Finding{{"runtime", broken, fmt.Sprintf("%s is open to others (mode %04o)", dir, st.Mode&0o7777), "chmod 0700 " + dir}}
	}
	return good("runtime", dir)
}
