package view

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/policy"
	"cortexfs.org/libctx/toolshell/settings"
	"golang.org/x/sys/unix"
)

// Tool is what a lookup found: the facts for admission, read from the files
// that were opened, and the executable itself, held open. Close it.
type Tool struct {
	admit.Tool
	Description string
	Parallel    bool // calls of it may run beside each other
	Replay      bool // a call of it may be repeated after a crash

	file *os.File // nil unless Kind is Regular
	stat unix.Stat_t
	text map[string][]byte // its control files, as read
	// unreadable says why control files that are there were not read.
	unreadable map[string]error
	print      print
}

// Close closes the executable.
func (t *Tool) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// Lookup finds the file behind a tool's name: the first regular file with an
// execute bit in the directories of the agent's path. Without one it is the
// first thing of that name, so that the refusal can say what stood there; with
// nothing of that name Kind is admit.Missing. What must not be trusted comes
// back as admit.Irregular with the reason. An error means that the answer is
// not known. The caller closes the tool.
func (a *Agent) Lookup(l paths.Layout, name libctx.Tool) (*Tool, error) {
	root, err := atomicfile.OpenDir(l.Root)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "tree %s: %w", l.Root, bare(err))
	}
	defer root.Close()
	fallback := ""
	for _, dir := range a.Path {
		var st unix.Stat_t
		err := a.within(root, dir, func(d *atomicfile.Dir) (err error) {
			st, err = d.Lstat(string(name))
			return err
		})
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err == nil && isHit(&st):
			return a.load(root, dir, name), nil
		case fallback == "":
			fallback = dir
		}
	}
	if fallback == "" {
		return &Tool{Tool: admit.Tool{Name: name}}, nil
	}
	return a.load(root, fallback, name), nil
}

// isHit: a regular file that somebody may execute. Whether the agent may is
// admission's question: a tool its owner closed to others is not to be replaced
// by another of the same name further on.
func isHit(st *unix.Stat_t) bool { return isRegular(st) && st.Mode&0o111 != 0 }

// within runs fn with the directory behind an inside path; where users write,
// with the rights of the agent.
func (a *Agent) within(root *atomicfile.Dir, inside string, fn func(*atomicfile.Dir) error) error {
	work := func() error {
		d, err := root.Sub(strings.TrimPrefix(inside, paths.InRoot+"/"))
		if err != nil {
			return err
		}
		defer d.Close()
		return fn(d)
	}
	if userPlace(inside) {
		return a.Owner.Do(work)
	}
	return work()
}

// load opens and reads the tool in one directory.
func (a *Agent) load(root *atomicfile.Dir, dir string, name libctx.Tool) *Tool {
	t := &Tool{Tool: admit.Tool{Name: name, Path: dir + "/" + string(name)}, text: map[string][]byte{}}
	err := a.within(root, dir, func(d *atomicfile.Dir) error {
		var st unix.Stat_t
		if err := unix.Fstat(d.FD(), &st); err != nil {
			return err
		}
		// Who can write the directory can exchange its tools for one another.
		if err := trusted(dir, &st, a.Owner.UID); err != nil {
			return err
		}
		return t.read(d, a.Owner.UID)
	})
	return t.judge(err)
}

// judge is the tool after it was read: one that may be run, or one that must not
// be and why.
func (t *Tool) judge(err error) *Tool {
	if err == nil {
		t.Kind = admit.Regular
		return t
	}
	t.Close()
	t.file, t.Kind, t.Obstacle = nil, admit.Irregular, err.Error()
	if errdefs.Is(err, errdefs.NotFound) { // removed since it was seen
		t.Tool = admit.Tool{Name: t.Name}
	} else if !strings.Contains(t.Obstacle, t.Path) {
		t.Obstacle = t.Path + ": " + t.Obstacle
	}
	return t
}

// shown are the control files of a tool that say what it is, and the settings of
// the tool shell. The others, log and status, are written while it runs and are
// no concern of a view.
func shown(tool libctx.Tool) func(file string) bool {
	return func(file string) bool {
		if file == settings.File {
			return tool == admit.Shell
		}
		return file != "log" && file != "status" && known(toolFiles, file)
	}
}

var toolFiles = control.ToolFiles()

// read fills in the tool from the file in d and the control directory beside
// it. An error says why the file must not be run.
func (t *Tool) read(d *atomicfile.Dir, owner uint32) error {
	var err error
	t.file, t.stat, err = open(d, string(t.Name), t.Path, owner)
	if err != nil {
		return err
	}
	t.Mode, t.UID, t.GID = modeOf(&t.stat), t.stat.Uid, t.stat.Gid
	if t.stat.Size > libctx.MaxToolFile {
		return errdefs.New(errdefs.TooBig, "%s: is longer than %d bytes", t.Path, libctx.MaxToolFile)
	}
	seen := []entry{{string(t.Name), t.stat}}

	rel, name := string(t.Name)+".d", t.Path+".d"
	sub, st, err := openDir(d, rel, name, owner)
	if errdefs.Is(err, errdefs.NotFound) {
		t.print = fingerprint(seen)
		return t.parse()
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	seen = append(seen, entry{rel, st})
	files, err := list(sub, ".", shown(t.Name))
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "%s: %w", name, bare(err))
	}
	t.unreadable = map[string]error{}
	for _, f := range files {
		text, st, err := read(sub, f.name, name+"/"+f.name, owner, libctx.MaxControlFile)
		switch {
		case isDistrust(err):
			return err
		case err != nil:
			t.unreadable[f.name] = err
			st = f.st
		default:
			t.text[f.name] = text
		}
		seen = append(seen, entry{f.name, st})
	}
	t.print = fingerprint(seen)
	return t.parse()
}

// parse makes the facts out of the texts. What can not be read or parsed counts
// as the strictest value, or refuses by itself.
func (t *Tool) parse() error {
	dir := t.Path + ".d/"
	// fact tells whether a file is there, or why it says nothing.
	fact := func(file string, parse func([]byte) error) (present bool, problem string) {
		if err := t.unreadable[file]; err != nil {
			return true, err.Error()
		}
		text, ok := t.text[file]
		if !ok {
			return false, ""
		}
		if err := parse(text); err != nil {
			return true, dir + err.Error()
		}
		return true, ""
	}
	mode := control.ModeCLI
	if _, problem := fact("mode", func(b []byte) (err error) { mode, err = control.ParseMode(b); return err }); problem != "" {
		return errdefs.New(errdefs.Invalid, "%s", problem)
	}
	t.CLIOnly = mode == control.ModeCLI

	_, t.SchemaError = fact("schema", func(b []byte) error { t.Schema = b; return nil })
	_, t.EffectError = fact("effect", func(b []byte) (err error) { t.Effect, err = control.ParseEffectFile(b); return err })
	t.HasPolicy, t.PolicyError = fact("policy", func(b []byte) (err error) {
		if t.Policy, err = policy.Parse(b); err != nil {
			err = errdefs.New(errdefs.Invalid, "policy: %w", err)
		}
		return err
	})

	// These three grant nothing; without them a tool is run alone, once, and
	// has no description.
	fact("parallel", func(b []byte) (err error) { t.Parallel, err = control.ParseParallel(b); return err })
	fact("replay", func(b []byte) (err error) { t.Replay, err = control.ParseReplay(b); return err })
	fact("description", func(b []byte) (err error) { t.Description, err = control.ParseDescription(b); return err })
	return nil
}
