package tsh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A tool gets its words and the terminal, and what comes of it is shown.
func TestTools(t *testing.T) {
	r := enterable(t, "say", "fail", "die", "part", "asks", "groups", "mine", "fs.read")
	s := r.start(80, 60)
	does(s, `say a 'b c' "" * $HOME \; # no`, "6 words:\n<a>\n<b c>\n<>\n<*>\n<$HOME>\n<;>", "")
	does(s, "fs.read README.md", "one\ntwo\nthree\n[sha256 "+hash+"]\n[lines 1-3 of 3]", "")
	does(s, "groups", "a group in front", "")
	does(s, "mine", "SigBlk: 0000000000000000\nSigIgn: "+ignored(t), "") // none but those of who started all this
	does(s, "part", "no end%", "")
	does(s, "fail 3", "", "3")
	does(s, "status", "3", "3")
	does(s, "say", "0 words:", "")
	does(s, "die KILL", "[1]  killed by SIGKILL  die KILL", "137")
	does(s, "die PIPE", "", "141")
	s.Type("asks" + enter)
	s.See("secret?")
	s.Type("hidden\n")
	s.Await("the answer", func(all string) bool { return strings.HasSuffix(all, "\nsecret?\nit is hidden\n"+prompt) })
	leave(t, s)
}

const hash = "b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2" // of README.md

// What is no builtin and no tool of the agent is never run, and the decision is made
// anew for each command.
func TestRefused(t *testing.T) {
	r := enterable(t, "say")
	s := r.start(120, 60)
	const none = ": no such tool (tool_not_found)\nhint: tools lists what there is"
	does(s, "ls", "tsh: ls"+none, "127")
	does(s, "sh -c true", "tsh: sh"+none, "127")
	s.Type("/bin/ls" + enter)
	s.See("coder tsh 127> /bin/ls\ntsh: tool name")
	s.Last("coder tsh 127>")
	// Its policy never had it, so the view does not show it.
	does(s, "fail 1", "tsh: fail"+none, "127")
	does(s, "say x", "1 words:\n<x>", "")

	const policy = "allow coder_t tool:tsh execute\n"
	r.control("policy", policy)
	does(s, "say x", "tsh: say: no line allows coder_t tool:say execute (agent_policy)", "126")
	r.control("policy", policy+"allow coder_t tool:say execute\n")
	does(s, "say x", "1 words:\n<x>", "")
	r.control("perm", "rw-\n")
	does(s, "say x", "tsh: say: perm is rw-, a tool with effect host_process needs --x (perm)", "126")
	does(s, "tools", "tsh", "")
	r.control("perm", "rwx\n")
	r.control("path", "/ctx/home/"+filepath.Base(r.Layout.Home(uint32(r.UID)))+"/tool\n")
	does(s, "say x", "tsh: say"+none, "127")
	r.control("path", "/ctx/tool\n")
	r.control("approval", "ask\n")
	does(s, "say x", "1 words:\n<x>", "")
	must(t, os.Chmod(filepath.Join(r.Layout.Control("coder"), "perm"), 0o666))
	s.Type("say x" + enter)
	s.See("agent coder: agent/coder.d/perm: can be written by others")
	s.Last("coder tsh 126>")
	leave(t, s)
}

func TestEditing(t *testing.T) {
	r := enterable(t, "say")
	s := r.start(80, 50)
	s.Type("sax\x7fy wold\x1b[D\x1b[D\x1b[Dr" + enter) // wold becomes wrold
	s.Await("the edited line", func(all string) bool { return strings.HasSuffix(all, "> say wrold\n1 words:\n<wrold>\n"+prompt) })
	s.Type("\x1b[A") // the line before
	s.Last(prompt + " say wrold")
	s.Type(ctrlC)
	s.Await("an empty line below", func(all string) bool { return strings.HasSuffix(all, "> say wrold\n"+prompt) })
	s.Type("say never" + ctrlC)
	s.Await("an empty line", func(all string) bool { return strings.HasSuffix(all, "> say never\n"+prompt) })
	s.Type(ctrlZ) // means nothing here
	does(s, "say a", "1 words:\n<a>", "")
	s.Type("say 'two" + enter)
	s.Type("rows' \\" + enter)
	s.Type("c" + enter)
	s.Await("a command of three rows", func(all string) bool { return strings.HasSuffix(all, "2 words:\n<two\nrows>\n<c>\n"+prompt) })
	s.Paste("say one\nfail 1\nsay two\n")
	s.See("say two")
	s.Type(enter)
	s.Await("a command for each row", func(all string) bool {
		return strings.Contains(all, "\n1 words:\n<one>\ntsh: fail: no such tool") && strings.HasSuffix(all, "\n1 words:\n<two>\n"+prompt)
	})
	s.Type("say 'not closed" + ctrlD) // is no end: the line is not empty
	s.Type(ctrlC)
	s.Last(prompt)
	const plain = " is no operator here: there are no pipes, redirections or lists\nhint: a shell as a tool has them: bash -c '…'\n"
	does(s, "say a &&", "tsh: \"&&\""+plain+"2 words:\n<a>\n<&&>", "")
	does(s, "&", "tsh: an & stands behind a command", "2")
	leave(t, s)
}

func TestCompletion(t *testing.T) {
	r := enterable(t, "say", "copy", "fs.read", "fs.list")
	for _, name := range []string{"alpha.txt", "al'ice", ".hidden"} {
		r.Write(filepath.Join(r.Workspace, name), "")
	}
	s := r.start(80, 30)
	for typed, want := range map[string]string{
		"sa\t":           "say",
		"jo\t":           "jobs",
		"fs.r\t":         "fs.read",
		"fai\t":          "fai",
		"say al\t":       "say alpha.txt",
		"say READ\t":     "say README.md",
		"say x READ\t":   "say x README.md",
		"which fs.li\t":  "which fs.list",
		"help unp\t":     "help unpin",
		"say /ctx/age\t": "say /ctx/agent/",
		"fg al\t":        "fg al",
	} {
		s.Type(typed)
		s.Last(prompt + " " + want)
		s.Type(ctrlC)
		s.Last(prompt)
	}
	// What is refused at this moment is not offered.
	r.control("policy", "allow coder_t tool:tsh execute\n")
	s.Type("sa\t")
	s.Last(prompt + " sa")
	s.Type(ctrlC)
	s.Last(prompt)
	leave(t, s)
}

// The history is in the agent's home, its owner's alone, and there the next time.
func TestHistory(t *testing.T) {
	r := enterable(t, "say")
	s := r.start(80, 24)
	does(s, "say first", "1 words:\n<first>", "")
	leave(t, s)
	file := filepath.Join(r.Layout.AgentHome(uint32(r.UID), "coder"), ".tsh_history")
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	s = r.start(80, 24)
	s.Type("\x1b[A\x1b[A")
	s.Last(prompt + " say first")
	s.Type(enter)
	s.See("<first>")
	leave(t, s)
}

// ignored is what this process was started to ignore, as the kernel writes it. Go
// ignores nothing by itself.
func ignored(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	_, rest, _ := strings.Cut(string(status), "\nSigIgn:\t")
	mask, _, _ := strings.Cut(rest, "\n")
	return mask
}

// Jobs are stopped, listed, continued and ended by keys and builtins; keys reach the
// one in front.
func TestJobs(t *testing.T) {
	r := enterable(t, "say", "copy", "told", "fail")
	s := r.start(80, 80)
	const copying = "copying"
	s.Type("copy" + enter)
	s.Last(copying)
	s.Type(ctrlZ)
	s.Await("a stopped job", func(all string) bool {
		return strings.HasSuffix(all, copying+"\n^Z\n[1]+ stopped   copy\ncoder tsh 148>")
	})
	does(s, "say between", "1 words:\n<between>", "")
	s.Type("copy second" + enter)
	s.Await("the second", func(all string) bool { return strings.HasSuffix(all, "> copy second\n"+copying) })
	s.Type(ctrlZ)
	s.Last("coder tsh 148>")
	does(s, "jobs", "[1]  stopped   copy\n[2]+ stopped   copy second", "")
	s.Type("fg 1" + enter)
	s.Last("copy")
	s.Type("a line\r")
	s.Await("the line, shown by the terminal or by the tool", func(all string) bool { return strings.HasSuffix(all, "\na line") })
	s.Type(ctrlC)
	s.Await("the end of the first", func(all string) bool { return strings.HasSuffix(all, "\n^C\ncoder tsh 130>") })
	s.Type("kill %2" + enter)
	s.See("[2]  killed by SIGTERM  copy second")
	does(s, "jobs", "", "")

	// In the background input is not to be had.
	s.Type("copy &" + enter)
	s.See("[1] copy &\n")
	s.See("[1]+ stopped, wants input  copy &")
	s.Type("kill -9 %1" + enter)
	s.See("[1]  killed by SIGKILL  copy &")
	s.Type("fail 5 &" + enter)
	s.See("[1]  exit 5    fail 5 &")
	for line, want := range map[string]string{
		"fg":          "tsh: fg: there are no jobs",
		"bg 7":        "tsh: bg: %7: no such job",
		"kill %x":     "tsh: kill: \"%x\" is no number of a job",
		"kill 1":      "tsh: kill: \"1\" is no %N",
		"kill -NO %1": "tsh: kill: \"NO\" is no signal",
		"jobs &":      "tsh: jobs: only tools run in the background",
	} {
		before := len(s.Raw())
		s.Type(line + enter)
		s.WroteAfter(before, want)
	}
	does(s, "status --help", "status\nprint the exit code of the last command", "")
	leave(t, s)
}

// Interrupts reach the job alone, and more than one.
func TestInterrupt(t *testing.T) {
	r := enterable(t, "told")
	s := r.start(80, 24)
	s.Type("told" + enter)
	s.Last("waiting")
	r.AwaitExists(r.Workspace + "/ready")
	s.Type(ctrlC)
	s.Last("coder tsh 9>")
	if text := r.Read(r.Workspace + "/told"); text != "heard INT\n" {
		t.Errorf("%q", text)
	}
	leave(t, s)
}

// A job that changes the modes of the terminal has them where it goes on, and nobody
// else has.
func TestModes(t *testing.T) {
	r := enterable(t, "raw", "modes")
	s := r.start(80, 40)
	does(s, "modes", "icanon", "")
	s.Type("raw" + enter)
	s.See("[1]+ stopped   raw")
	s.Last("coder tsh 147>")
	does(s, "modes", "icanon", "")
	s.Type("fg" + enter)
	s.See("-icanon")
	s.Last("coder tsh 4>")
	does(s, "modes", "icanon", "")
	leave(t, s)
}

// The shell ends as it is told to, but asks once about what is stopped.
func TestExit(t *testing.T) {
	r := enterable(t, "copy", "fail")
	s := r.start(80, 24)
	does(s, "fail 4", "", "4")
	s.Type("exit 7" + enter)
	if code := s.Exit(); code != 7 {
		t.Errorf("exit 7: %d", code)
	}
	s = r.start(80, 24)
	does(s, "fail 4", "", "4")
	s.Type("half a line" + ctrlD)
	s.Type(ctrlC + ctrlD)
	if code := s.Exit(); code != 4 {
		t.Errorf("Ctrl+D: %d", code)
	}
	s = r.start(80, 24)
	s.Type("copy" + enter)
	s.Last("copying")
	s.Type(ctrlZ)
	s.Last("coder tsh 148>")
	for _, key := range []string{"exit 0" + enter, ctrlD} {
		before := len(s.Raw())
		s.Type(key)
		s.WroteAfter(before, "there are stopped jobs")
		does(s, "kill %5", "tsh: kill: %5: no such job\nhint: jobs lists them", "1")
	}
	s.Type("exit 2" + enter)
	s.See("exit 2")
	s.Type("exit 3" + enter)
	if code := s.Exit(); code != 3 {
		t.Errorf("asked twice: %d", code)
	}
}
