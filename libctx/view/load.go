package view

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/linefile"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/policy"
	"golang.org/x/sys/unix"
)

// kept are the controls that the runtime writes itself: they must be trusted
// like the others, and are not read here. Nor are those that prompts are made
// of, if there is no model to be told anything.
var kept = []string{"log", "meta.json", "pid", "status"}

func promptText(file string) bool { return file == "system.md" || file == "prompt.template.md" }

// Load reads an agent from its control directory, with one open of the
// directory and a read of each file that is there. Errors: errdefs.NotFound if
// there is no such agent; errdefs.Denied naming the file or directory that is a
// link, belongs to a stranger, can be written by others, or claims an identity
// it may not; errdefs.Invalid naming the file and line that does not parse, or
// the value that this version refuses.
func Load(l paths.Layout, name libctx.Agent) (*Agent, error) {
	c, err := loadControls(l, name)
	if err != nil {
		return nil, refused(name, err)
	}
	a, err := c.agent(l, name)
	if err != nil {
		return nil, refused(name, err)
	}
	return a, nil
}

// refused says of which agent an error is, keeping kind and hint.
func refused(name libctx.Agent, err error) error {
	e := errdefs.New(errdefs.KindOf(err), "agent %s: %w", name, err)
	if hint := errdefs.HintOf(err); hint != "" {
		e.Hint = hint
	}
	return e
}

// controls is the text of an agent's control files at one moment, and who owns
// the directory they are in.
type controls struct {
	dir   string // agent/NAME.d
	owner uint32
	text  map[string][]byte
}

func loadControls(l paths.Layout, name libctx.Agent) (*controls, error) {
	root, err := atomicfile.OpenDir(l.Root)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "tree %s: %w", l.Root, bare(err))
	}
	defer root.Close()
	c := &controls{dir: "agent/" + string(name) + ".d", text: map[string][]byte{}}
	dir, err := openControl(l, root, c.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstat(dir.FD(), &st); err != nil {
		return nil, errdefs.New(errdefs.IO, "%s: %w", c.dir, err)
	}
	c.owner = st.Uid
	// Whoever can write the directories above can exchange one agent's controls
	// for another's.
	for _, above := range []string{".", "agent"} {
		var st unix.Stat_t
		if st, err = root.Lstat(above); err != nil {
			return nil, errdefs.New(errdefs.KindOf(err), "%s: %w", above, bare(err))
		}
		if err := trusted(path.Join(l.Root, above), &st, c.owner); err != nil {
			return nil, err
		}
	}
	id, err := readerOf(l, c.dir, &st)
	if err != nil {
		return nil, err
	}
	return c, id.Do(func() error { return c.read(dir) })
}

// openControl opens the control directory and says what stands in its place if
// that fails.
func openControl(l paths.Layout, root *atomicfile.Dir, rel string) (*atomicfile.Dir, error) {
	dir, err := root.Sub(rel)
	if err == nil {
		return dir, nil
	}
	st, lerr := root.Lstat(rel)
	switch {
	case lerr == nil && !isDir(&st):
		return nil, errdefs.New(errdefs.Denied, "%s: is %s, not a directory", rel, kindOf(&st))
	case errors.Is(err, unix.ELOOP):
		return nil, errdefs.New(errdefs.Denied, "%s: is reached by a link", rel)
	case errors.Is(err, fs.ErrNotExist):
		return nil, errdefs.New(errdefs.NotFound, "there is no such agent in %s", l.Root)
	}
	return nil, errdefs.New(errdefs.KindOf(err), "%s: %w", rel, bare(err))
}

// readerOf is the identity that reads a control directory: that of its owner,
// so that root reads for a user only what the user could. Outside system mode
// the directory must be the process's own, or root's.
func readerOf(l paths.Layout, name string, st *unix.Stat_t) (asuser.Identity, error) {
	self := asuser.Self()
	owner := st.Uid
	if !l.System {
		owner = self.UID
	}
	if err := trusted(name, st, owner); err != nil {
		return asuser.Identity{}, err
	}
	if st.Uid == self.UID || !l.System {
		return self, nil
	}
	id, _, err := asuser.Lookup(st.Uid)
	return id, err
}

// read fills in the texts. Entries that are no control files are not looked at.
func (c *controls) read(dir *atomicfile.Dir) error {
	entries, err := list(dir, ".", func(file string) bool { return known(control.AgentFiles(), file) })
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "%s: %w", c.dir, bare(err))
	}
	executable := slices.ContainsFunc(entries, func(e entry) bool { return e.name == "abi" })
	for _, e := range entries {
		file, name := e.name, c.dir+"/"+e.name
		if !isRegular(&e.st) {
			return notRegular(name, &e.st)
		}
		if slices.Contains(kept, file) || executable && promptText(file) {
			if err := trusted(name, &e.st, c.owner); err != nil {
				return err
			}
			continue
		}
		text, _, err := read(dir, file, name, c.owner, libctx.MaxControlFile)
		switch {
		case errdefs.Is(err, errdefs.NotFound): // removed since it was listed
			continue
		case err != nil:
			return err
		}
		c.text[file] = text
	}
	return nil
}

// set parses one control into its place if the file is there. An error gets the
// name of the directory: the parsers know their file alone.
func set[T any](c *controls, file string, to *T, parse func([]byte) (T, error)) error {
	text, ok := c.text[file]
	if !ok {
		return nil
	}
	v, err := parse(text)
	if err != nil {
		var at *linefile.Error
		if errors.As(err, &at) && at.File == "" {
			err = linefile.In(file, err)
		}
		return errdefs.New(errdefs.KindOf(err), "%s/%w", c.dir, err)
	}
	*to = v
	return nil
}

// free is the parser of a file of free text.
func free(file string) func([]byte) (string, error) {
	return func(text []byte) (string, error) { return control.ParseText(file, text) }
}

// agent makes the agent out of the texts.
func (c *controls) agent(l paths.Layout, name libctx.Agent) (*Agent, error) {
	who, err := c.principal(l)
	if err != nil {
		return nil, err
	}
	a := defaults(name, who)
	label := control.LabelOf(name)
	var abi, root string
	var parent control.Parent
	if err := errors.Join(
		set(c, "abi", &abi, control.ParseABI),
		set(c, "model", &a.Model, control.ParseModel),
		set(c, "root", &root, control.ParseRoot),
		set(c, "label", &label, control.ParseLabel),
		set(c, "perm", &a.Perm, control.ParsePermFile),
		set(c, "policy", &a.Policy, policy.Parse),
		set(c, "tools", &a.Declared, control.ParseTools),
		set(c, "path", &a.Path, control.ParsePath),
		set(c, "mount", &a.Mounts, mount.Parse),
		set(c, "env", &a.Env, control.ParseEnv),
		set(c, "cwd", &a.Cwd, control.ParseCwd),
		set(c, "protect", &a.Protect, control.ParseProtect),
		set(c, "timeout", &a.Timeout, control.ParseTimeout),
		set(c, "result_bytes", &a.ResultBytes, control.ParseResultBytes),
		set(c, "approval", &a.Approval, control.ParseApproval),
		set(c, "effects", &a.Effects, control.ParseEffects),
		set(c, "parent", &parent, control.ParseParent),
		set(c, "life", &a.Life, control.ParseLife),
		set(c, "window", &a.Window, control.ParseWindow),
		set(c, "effort", &a.Effort, control.ParseEffort),
		set(c, "system.md", &a.System, free("system.md")),
		set(c, "prompt.template.md", &a.Template, free("prompt.template.md")),
	); err != nil {
		return nil, first(err)
	}
	a.given = slices.Collect(maps.Keys(c.text))
	a.Executable, a.Subject, a.Parent = abi != "", label.Subject, parent.String()
	a.Network = a.Policy.Allows(a.Subject, "network", "default", "connect")
	if !a.Executable && a.Model == "" {
		return nil, errdefs.New(errdefs.Invalid, "%s has neither abi nor model: it is no agent that can run", c.dir).
			WithHint("write %s to %s/abi for an executable agent, or a model's name to %s/model", libctx.ABI, c.dir, c.dir)
	}
	for _, dir := range a.Path {
		if err := checkPath(dir, who.id.UID); err != nil {
			return nil, errdefs.New(errdefs.Invalid, "%s/path: %w", c.dir, err)
		}
	}
	return a, nil
}

// first is the first of joined errors: one line names one file.
func first(err error) error {
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		return all.Unwrap()[0]
	}
	return err
}

// principal decides as whom the agent runs.
func (c *controls) principal(l paths.Layout) (principal, error) {
	var says claim
	var uid *uint32
	number := func(file string) func([]byte) (*uint32, error) {
		return func(text []byte) (*uint32, error) {
			n, err := control.ParseUint32(file, text)
			return &n, err
		}
	}
	if err := errors.Join(
		set(c, "owner", &says.owner, number("owner")),
		set(c, "gid", &says.gid, number("gid")),
		set(c, "uid", &uid, number("uid")),
		set(c, "groups", &says.groups, control.ParseGroups),
	); err != nil {
		return principal{}, first(err)
	}
	_, says.hasGroups = c.text["groups"]
	who, err := believe(l, c.dir, c.owner, says)
	if err == nil && uid != nil && *uid != who.id.UID {
		err = errdefs.New(errdefs.Invalid, "%s/uid: says %d; another uid than the owner's (%d) is reserved", c.dir, *uid, who.id.UID)
	}
	return who, err
}
