package tree

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/view"
	"golang.org/x/sys/unix"
)

// hostOwned lists the controls that the runtime writes.
var hostOwned = []string{"log", "meta.json", "pid", "status"}

// SetControl replaces one control file of an agent, atomically, with the
// canonical form of text; the LF at its end may be missing. A refused text is
// errdefs.Invalid and names line and token; the file that was there stays. So
// does a text that is right by itself and would leave an agent that is refused,
// or one whose explicit window its model does not have.
func SetControl(l paths.Layout, a libctx.Agent, file string, text []byte) error {
	switch {
	case slices.Contains(hostOwned, file):
		return errdefs.New(errdefs.Invalid, "control %s: is written by the runtime", file)
	case !slices.Contains(control.AgentFiles(), file):
		return noControl(file)
	case len(text) > libctx.MaxControlFile:
		return errdefs.New(errdefs.TooBig, "control %s: %d bytes are over the limit of %d", file, len(text), libctx.MaxControlFile)
	}
	text, err := control.CanonicalAgent(file, text)
	if err != nil {
		return err
	}
	// Who the agent is takes several files to say; the last of them is checked.
	if !slices.Contains([]string{"owner", "gid", "groups"}, file) {
		if err := view.Accepts(l, a, file, text); err != nil {
			return err
		}
	}
	write := func(root *atomicfile.Dir) error {
		dir, err := openControls(root, a)
		if err != nil {
			return err
		}
		defer dir.Close()
		if err := together(dir, file); err != nil {
			return err
		}
		// In a directory of another user's, root is a stranger like others.
		keeper, err := keeperOf(dir)
		if err != nil {
			return err
		}
		return keeper.Do(func() error { return dir.Replace(file, text, filePerm) })
	}
	if file != "model" && file != "window" {
		return change(l, write)
	}
	return changeModels(l, func(root *atomicfile.Dir) error {
		if err := fits(l, a, file, text); err != nil {
			return err
		}
		return write(root)
	})
}

// together refuses a change that would leave an agent nothing drives, or that
// two things drive.
func together(dir *atomicfile.Dir, file string) error {
	other := map[string]string{"abi": "model", "model": "abi"}[file]
	if other == "" {
		return nil
	}
	_, err := dir.Lstat(other)
	switch {
	case errdefs.Is(err, errdefs.NotFound):
		return nil
	case err != nil:
		return err
	case file == "abi":
		return errdefs.New(errdefs.Invalid, "control abi: a model drives this agent").
			WithHint("make a new agent with --exec")
	}
	return nil // an executable agent may name the model it wants
}

// GetControl reads one control file. One that is not there is errdefs.NotFound.
func GetControl(l paths.Layout, a libctx.Agent, file string) (text []byte, err error) {
	if !slices.Contains(control.AgentFiles(), file) {
		return nil, noControl(file)
	}
	err = inside(l, func(root *atomicfile.Dir) error {
		dir, err := openControls(root, a)
		if err != nil {
			return err
		}
		defer dir.Close()
		text, err = dir.ReadFile(file, libctx.MaxControlFile)
		if errdefs.Is(err, errdefs.NotFound) {
			return errdefs.New(errdefs.NotFound, "agent %s: control %s is not set", a, file)
		}
		return err
	})
	return text, err
}

// Control is one control file with its text.
type Control struct {
	Name string
	Text []byte
}

// Controls reads every control file an agent has but log, sorted by name.
func Controls(l paths.Layout, a libctx.Agent) ([]Control, error) {
	var list []Control
	err := inside(l, func(root *atomicfile.Dir) error {
		dir, err := openControls(root, a)
		if err != nil {
			return err
		}
		defer dir.Close()
		for _, file := range control.AgentFiles() {
			if file == "log" { // says nothing about the agent, and may be long
				continue
			}
			text, err := dir.ReadFile(file, libctx.MaxControlFile)
			if errdefs.Is(err, errdefs.NotFound) {
				continue
			}
			if err != nil {
				return err
			}
			list = append(list, Control{file, text})
		}
		return nil
	})
	return list, err
}

// openControls opens agent/NAME.d, which must be a directory and no link.
func openControls(root *atomicfile.Dir, a libctx.Agent) (*atomicfile.Dir, error) {
	dir, err := root.Sub(path.Join("agent", string(a)+".d"))
	if errdefs.Is(err, errdefs.NotFound) {
		return nil, errdefs.New(errdefs.NotFound, "no agent %q", a).WithHint("ctx agent ls lists them")
	}
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "agent %s: %w", a, err)
	}
	return dir, nil
}

func noControl(file string) error {
	return errdefs.New(errdefs.Invalid, "%q is not a control of agents", file).
		WithHint("the controls are %s", strings.Join(control.AgentFiles(), " "))
}

// Owner is the uid the sessions and data of an agent belong to: what its owner
// control says if root wrote the controls, else whoever owns them.
func Owner(l paths.Layout, a libctx.Agent) (uid uint32, err error) {
	err = inside(l, func(root *atomicfile.Dir) error {
		st, err := root.Lstat(path.Join("agent", string(a)+".d"))
		if errdefs.Is(err, errdefs.NotFound) {
			return errdefs.New(errdefs.NotFound, "no agent %q", a).WithHint("ctx agent ls lists them")
		}
		if err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return errdefs.New(errdefs.Invalid, "agent/%s.d: is not a directory", a)
		}
		if uid = st.Uid; uid != 0 {
			return nil
		}
		text, err := root.ReadFile(path.Join("agent", string(a)+".d", "owner"), libctx.MaxControlFile)
		if errdefs.Is(err, errdefs.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(string(text), "\n"), 10, 32)
		if err != nil {
			return errdefs.New(errdefs.Invalid, "agent/%s.d/owner: is not a uid", a)
		}
		uid = uint32(n)
		return nil
	})
	return uid, err
}

// identity is what acts as uid: this process itself, or the account.
func identity(uid uint32) (asuser.Identity, error) {
	if self := asuser.Self(); self.UID == uid {
		return self, nil
	}
	id, _, err := asuser.Lookup(uid)
	return id, err
}

// keeperOf is who writes an open control directory: its owner.
func keeperOf(dir *atomicfile.Dir) (asuser.Identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(dir.FD(), &st); err != nil {
		return asuser.Identity{}, errdefs.New(errdefs.IO, "%s: %w", dir.Path(), err)
	}
	return identity(st.Uid)
}

// Keeper is the uid whose word an agent's control files are: the owner of its
// control directory, or of what stands in its place.
func Keeper(l paths.Layout, a libctx.Agent) (uid uint32, err error) {
	err = inside(l, func(root *atomicfile.Dir) error {
		for _, name := range []string{string(a) + ".d", string(a)} {
			st, err := root.Lstat(path.Join("agent", name))
			if err == nil {
				uid = st.Uid
				return nil
			}
			if !errdefs.Is(err, errdefs.NotFound) {
				return err
			}
		}
		return errdefs.New(errdefs.NotFound, "no agent %q", a).WithHint("ctx agent ls lists them")
	})
	return uid, err
}

// Kept counts the agents whose control directories are a user's.
func Kept(l paths.Layout, uid uint32) (n int, err error) {
	err = inside(l, func(root *atomicfile.Dir) error {
		entries, err := root.ReadDir("agent")
		if err != nil {
			return err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				return err
			}
			st, ok := info.Sys().(unix.Stat_t)
			if ok && e.IsDir() && st.Uid == uid {
				n++
			}
		}
		return nil
	})
	return n, err
}
