package control

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/linefile"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/policy"
	"cortexfs.org/libctx/toolshell/settings"
)

// grammar reads the text of one file and writes it back in canonical form.
type grammar func(text []byte) ([]byte, error)

// of joins a parser with the writer of what it returns.
func of[T any](parse func([]byte) (T, error), write func(T) []byte) grammar {
	return func(text []byte) ([]byte, error) {
		v, err := parse(text)
		if err != nil {
			return nil, err
		}
		return write(v), nil
	}
}

// exact is the grammar of a file whose accepted texts are all canonical.
func exact[T any](parse func([]byte) (T, error)) grammar {
	return func(text []byte) ([]byte, error) {
		if _, err := parse(text); err != nil {
			return nil, err
		}
		return text, nil
	}
}

func free(file string) grammar {
	return exact(func(text []byte) (string, error) { return ParseText(file, text) })
}

func number32(file string) grammar {
	return of(func(text []byte) (uint32, error) { return ParseUint32(file, text) }, decimal)
}

var policyGrammar = of(func(text []byte) (policy.Policy, error) {
	p, err := policy.Parse(text)
	return p, linefile.In("policy", err)
}, policy.Policy.Text)

var mountGrammar = of(func(text []byte) (mount.Table, error) {
	t, err := mount.Parse(text)
	return t, linefile.In("mount", err)
}, mount.Table.Text)

var agentFiles = map[string]grammar{
	"abi":                of(ParseABI, Line),
	"approval":           of(ParseApproval, Line),
	"cwd":                of(ParseCwd, Line),
	"effects":            of(ParseEffects, Line),
	"effort":             of(ParseEffort, Line),
	"env":                of(ParseEnv, List),
	"gid":                number32("gid"),
	"groups":             of(ParseGroups, decimals),
	"label":              of(ParseLabel, stringer[Label]),
	"life":               of(ParseLife, Line),
	"log":                free("log"),
	"meta.json":          exact(ParseMeta),
	"model":              of(ParseModel, word[libctx.Model]),
	"mount":              mountGrammar,
	"owner":              number32("owner"),
	"parent":             of(ParseParent, writeParent),
	"path":               of(ParsePath, List),
	"perm":               of(ParsePermFile, stringer[Perm]),
	"pid":                of(ParsePid, writePid),
	"policy":             policyGrammar,
	"prompt.template.md": free("prompt.template.md"),
	"protect":            of(ParseProtect, List),
	"result_bytes":       of(ParseResultBytes, decimal),
	"root":               of(ParseRoot, Line),
	"status":             of(ParseStatus, Line),
	"system.md":          free("system.md"),
	"timeout":            of(ParseTimeout, writeTimeout),
	"tools":              of(ParseTools, words[libctx.Tool]),
	"uid":                number32("uid"),
	"window":             of(ParseWindow, stringer[Window]),
}

var toolFiles = map[string]grammar{
	"cap":         of(ParseCap, List),
	"description": exact(ParseDescription),
	"effect":      of(ParseEffectFile, word[Effect]),
	"log":         free("log"),
	"mode":        of(ParseMode, Line),
	"name":        of(ParseName, word[libctx.Tool]),
	"parallel":    of(ParseParallel, writeParallel),
	"policy":      policyGrammar,
	"replay":      of(ParseReplay, writeReplay),
	"schema":      exact(ParseSchema),
	"status":      of(ParseStatus, Line),
}

var modelFiles = map[string]grammar{
	"cap":        of(ParseModelCap, List),
	"default":    of(ParseDefault, List),
	"driver":     of(ParseDriver, Line),
	"effort":     of(ParseEffort, Line),
	"fallback":   of(ParseFallback, words[libctx.Model]),
	"id":         of(ParseModelID, word[libctx.Model]),
	"limit":      of(ParseLimit, stringer[Limit]),
	"log":        free("log"),
	"max_output": of(ParseMaxOutput, decimal),
	"status":     of(ParseStatus, Line),
}

// AgentFiles is the sorted names of the control files of agents.
func AgentFiles() []string { return slices.Sorted(maps.Keys(agentFiles)) }

// ToolFiles is the sorted names of the control files of tools.
func ToolFiles() []string { return slices.Sorted(maps.Keys(toolFiles)) }

// ModelFiles is the sorted names of the control files of models.
func ModelFiles() []string { return slices.Sorted(maps.Keys(modelFiles)) }

// CheckAgent tests the text of an agent's control file. A name that is no
// control file is refused too.
func CheckAgent(file string, text []byte) error { return check(agentFiles, "agents", file, text) }

// CheckTool tests the text of a tool's control file. A name that is no control
// file is refused too.
func CheckTool(file string, text []byte) error { return check(toolFiles, "tools", file, text) }

// CheckModel tests the text of a model's control file. A name that is no
// control file is refused too.
func CheckModel(file string, text []byte) error { return check(modelFiles, "models", file, text) }

func check(files map[string]grammar, of, file string, text []byte) error {
	g, err := find(files, of, file)
	if err == nil {
		_, err = g(text)
	}
	return err
}

func find(files map[string]grammar, of, file string) (grammar, error) {
	g, ok := files[file]
	if !ok {
		return nil, linefile.Refuse(0, file, "is not a control file of %s", of)
	}
	return g, nil
}

// CanonicalAgent makes the canonical text of an agent's control file from a
// value as people give it: the LF at the end may be missing, except in
// system.md and prompt.template.md, which stay as they are.
func CanonicalAgent(file string, text []byte) ([]byte, error) {
	return canonical(agentFiles, "agents", file, text)
}

// CanonicalTool is CanonicalAgent for a tool's control file.
func CanonicalTool(file string, text []byte) ([]byte, error) {
	return canonical(toolFiles, "tools", file, text)
}

// CanonicalModel is CanonicalAgent for a model's control file.
func CanonicalModel(file string, text []byte) ([]byte, error) {
	return canonical(modelFiles, "models", file, text)
}

func canonical(files map[string]grammar, of, file string, text []byte) ([]byte, error) {
	g, err := find(files, of, file)
	if err != nil {
		return nil, err
	}
	free := strings.HasSuffix(file, ".md") || file == "log"
	if n := len(text); n > 0 && text[n-1] != '\n' && !free {
		text = append(slices.Clone(text), '\n')
	}
	return g(text)
}

// CheckPath tests the text of the file at path, which should be absolute. Its
// place decides the grammar: agent/NAME.d/FILE, tool/NAME.d/FILE (of the tool tsh
// also config), model/PROVIDER/NAME.d/FILE, or a file named .tshrc. A file that
// has none is refused.
func CheckPath(path string, text []byte) error {
	dir, file := filepath.Split(filepath.Clean(path))
	if file == ".tshrc" {
		_, _, err := ParseTshrc(text)
		return err
	}
	dir = filepath.Clean(dir)
	name, ok := strings.CutSuffix(filepath.Base(dir), ".d")
	of := filepath.Base(filepath.Dir(dir))
	switch {
	case ok && of == "agent":
		if _, err := libctx.ParseAgent(name); err != nil {
			return err
		}
		return CheckAgent(file, text)
	case ok && of == "tool":
		if _, err := libctx.ParseTool(name); err != nil {
			return err
		}
		if name == "tsh" && file == settings.File {
			_, err := settings.Parse(text)
			return err
		}
		return CheckTool(file, text)
	case ok && filepath.Base(filepath.Dir(filepath.Dir(dir))) == "model":
		if _, err := libctx.ParseModel(of + "/" + name); err != nil {
			return err
		}
		if err := CheckModel(file, text); err != nil || file != "id" {
			return err
		}
		if id, _ := ParseModelID(text); string(id) != of+"/"+name {
			return linefile.In("id", linefile.Refuse(1, string(id), "is not its place, %s/%s", of, name))
		}
		return nil
	}
	return linefile.Refuse(0, path, "has no grammar: it is not agent/NAME.d/FILE, tool/NAME.d/FILE, model/PROVIDER/NAME.d/FILE or .tshrc")
}
