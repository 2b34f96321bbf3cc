package tree

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/models"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/policy"
	"golang.org/x/sys/unix"
)

// AgentSpec is a new agent. Exactly one of Exec, Program and Model is set.
type AgentSpec struct {
	Name    libctx.Agent
	Owner   asuser.Identity
	Exec    string        // file to copy; must be a program or a script with an interpreter line
	Program io.Reader     // the content of such a file
	Model   libctx.Model  // model that drives it
	Perm    *control.Perm // nil: the least bits the tools need
	Tools   []libctx.Tool // tools it may use
	Native  []libctx.Tool // tools it may use and call directly
	Mounts  []mount.Line  // besides the default table
	Allow   []string      // more policy, each "CLASS:NAME PERMISSION"
	System  []byte        // system.md; nil: none
	Own     bool          // its files are the owner's, whose word they then are; else the tree's owner's

	use libctx.Model // what its policy calls Model
}

// findModel refuses a model that the tree does not have, and finds what the
// policy calls it: as it is written, but for an alias of the owner's own in a
// tree of somebody else, of which a policy can say nothing.
func (s *AgentSpec) findModel(l paths.Layout) error {
	if s.Model == "" {
		return nil
	}
	ref, err := models.Find(l, s.Owner.UID, s.Model)
	if err != nil {
		return err
	}
	if _, err := models.Load(l, ref.ID); err != nil {
		return err
	}
	if s.use = ref.Name; ref.Own {
		s.use = ref.ID
	}
	return nil
}

// check tests what can be tested without the tree.
func (s *AgentSpec) check() error {
	if _, err := libctx.ParseAgent(string(s.Name)); err != nil {
		return err
	}
	switch {
	case !s.executable() && s.Model == "":
		return errdefs.New(errdefs.Invalid, "agent %s: neither a program nor a model drives it", s.Name)
	case s.executable() && s.Model != "":
		return errdefs.New(errdefs.Invalid, "agent %s: a program and a model can not both drive it", s.Name)
	}
	return nil
}

// executable reports whether a program drives the agent.
func (s *AgentSpec) executable() bool { return s.Exec != "" || s.Program != nil }

// tools lists the tools of both kinds once each, without tsh, which every agent
// has.
func (s *AgentSpec) tools() []libctx.Tool {
	var list []libctx.Tool
	for _, t := range slices.Concat(s.Tools, s.Native) {
		if t != "tsh" && !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

// native lists what goes into the tools control: what an executable agent may
// yield directly, what a model sees beside tsh.
func (s *AgentSpec) native() []libctx.Tool {
	if s.executable() {
		return s.tools()
	}
	var list []libctx.Tool
	for _, t := range s.Native {
		if t != "tsh" && !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

// files are the control files of the agent, checked: name to content.
func (s *AgentSpec) files(root *atomicfile.Dir) (map[string][]byte, error) {
	rules, err := s.policy()
	if err != nil {
		return nil, err
	}
	perm, err := s.perm(root)
	if err != nil {
		return nil, err
	}
	uid := strconv.FormatUint(uint64(s.Owner.UID), 10)
	files := map[string][]byte{
		"owner":  control.Line(uid),
		"uid":    control.Line(uid),
		"gid":    control.Line(strconv.FormatUint(uint64(s.Owner.GID), 10)),
		"groups": control.List(groups(s.Owner)),
		"perm":   control.Line(perm.String()),
		"label":  control.Line(control.LabelOf(s.Name).String()),
		"life":   control.Line(control.LifeOwned),
		"root":   control.Line(paths.InRoot),
		"cwd":    control.Line(paths.InWorkspace),
		"path":   control.List([]string{paths.InRoot + "/tool", paths.InRoot + "/home/" + uid + "/tool"}),
		"mount":  append(mount.Default(s.Owner.UID, s.Name), s.Mounts...).Text(),
		"policy": rules.Text(),
		"window": control.Line("auto"),
		"status": control.Line("idle"),
		"pid":    nil,
	}
	if list := s.native(); len(list) > 0 {
		names := make([]string, len(list))
		for i, t := range list {
			names[i] = string(t)
		}
		files["tools"] = control.List(names)
	}
	if s.executable() {
		files["abi"] = control.Line(libctx.ABI)
	} else {
		files["model"] = control.Line(string(s.Model))
	}
	if s.System != nil {
		files["system.md"] = s.System
	}
	for name, text := range files {
		if err := control.CheckAgent(name, text); err != nil {
			return nil, errdefs.New(errdefs.Invalid, "agent %s: %w", s.Name, err)
		}
	}
	return files, nil
}

// groups are the supplementary groups as the control file has them.
func groups(id asuser.Identity) []string {
	list := slices.Clone(id.Groups)
	slices.Sort(list)
	var names []string
	for _, g := range slices.Compact(list) {
		names = append(names, strconv.FormatUint(uint64(g), 10))
	}
	return names
}

// policy is what the flags allow: tsh always, each tool, the model, and what
// was written out.
func (s *AgentSpec) policy() (policy.Policy, error) {
	subject := s.Name.Subject()
	var p policy.Policy
	add := func(r policy.Rule) {
		if !slices.Contains(p.Rules, r) {
			p.Rules = append(p.Rules, r)
		}
	}
	for _, t := range append([]libctx.Tool{"tsh"}, s.tools()...) {
		add(policy.Rule{Subject: subject, Class: "tool", Name: string(t), Permission: "execute"})
	}
	if s.Model != "" {
		add(policy.Rule{Subject: subject, Class: "model", Name: string(s.use), Permission: "use"})
	}
	for _, text := range s.Allow {
		r, err := policy.ParseRule("allow " + string(subject) + " " + text)
		if err != nil {
			return p, errdefs.New(errdefs.Invalid, "allow %q: %w", text, err)
		}
		add(r)
	}
	return p, nil
}

// perm is the ceiling: as asked, or the least bits that the tools need. Tools
// that are not there are refused, because the agent would not work.
func (s *AgentSpec) perm(root *atomicfile.Dir) (control.Perm, error) {
	var need control.Perm
	for _, t := range s.tools() {
		if _, err := libctx.ParseTool(string(t)); err != nil {
			return 0, err
		}
		effect, err := s.effect(root, t)
		if err != nil {
			return 0, err
		}
		if !strings.HasPrefix(string(t), "agent.") {
			need |= effect.Perm()
		}
	}
	if s.Perm != nil {
		return *s.Perm, nil
	}
	return need, nil
}

// effect is the class of a tool on the agent's path. A tool without one is of
// unknown effect.
func (s *AgentSpec) effect(root *atomicfile.Dir, t libctx.Tool) (control.Effect, error) {
	for _, dir := range []string{"tool", "home/" + strconv.FormatUint(uint64(s.Owner.UID), 10) + "/tool"} {
		st, err := root.Lstat(dir + "/" + string(t))
		if errdefs.Is(err, errdefs.NotFound) {
			continue
		}
		if err != nil {
			return "", errdefs.New(errdefs.KindOf(err), "tool %s: %w", t, err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return "", errdefs.New(errdefs.Invalid, "tool %s: is not a regular file", t)
		}
		text, err := root.ReadFile(dir+"/"+string(t)+".d/effect", libctx.MaxControlFile)
		if errdefs.Is(err, errdefs.NotFound) {
			return control.ParseEffect("unknown")
		}
		if err != nil {
			return "", errdefs.New(errdefs.KindOf(err), "tool %s: %w", t, err)
		}
		effect, err := control.ParseEffect(strings.TrimSuffix(string(text), "\n"))
		if err != nil {
			return "", errdefs.New(errdefs.Invalid, "tool %s: %w", t, err)
		}
		return effect, nil
	}
	return "", errdefs.New(errdefs.NotFound, "no tool %q in the tree", t).WithHint("ctx tool ls lists them")
}

// OpenExec opens the program of an executable agent, with the rights of the
// caller, and checks that a kernel could run it. The caller closes it.
func OpenExec(name string) (*os.File, error) {
	refuse := func(kind errdefs.Kind, format string, args ...any) error {
		return errdefs.New(kind, "program %s: "+format, append([]any{name}, args...)...)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, refuse(errdefs.KindOf(err), "%w", errors.Unwrap(err))
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, refuse(errdefs.KindOf(err), "%w", err)
	}
	magic := make([]byte, len(elf))
	n, _ := io.ReadFull(f, magic)
	_, seekErr := f.Seek(0, io.SeekStart)
	switch {
	case !st.Mode().IsRegular():
		err = refuse(errdefs.Invalid, "is not a regular file")
	case st.Size() > libctx.MaxToolFile:
		err = refuse(errdefs.TooBig, "is %d bytes, over the limit of %d", st.Size(), libctx.MaxToolFile)
	case !runs(magic[:n]):
		err = neither(name)
	case seekErr != nil:
		err = refuse(errdefs.IO, "%w", seekErr)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// elf is how a program begins that is no script.
const elf = "\x7fELF"

// runs reports whether a kernel could run a file that begins so.
func runs(start []byte) bool {
	return strings.HasPrefix(string(start), "#!") || string(start) == elf
}

func neither(name string) error {
	return errdefs.New(errdefs.Invalid, "program %s: is neither an executable nor a script", name).
		WithHint("begin a script with its interpreter, for example #!/usr/bin/python3")
}
