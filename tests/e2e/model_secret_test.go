package e2e

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	provider "cortexfs.org/tests/internal/scripted"
	"cortexfs.org/tests/internal/world"
)

// echoed is an answer that says the key, whole, in base64 and escaped, in text,
// reasoning and a call, once cut at each place; and that asks to have it written.
func echoed() provider.Answer {
	var events []string
	for i := range len(labKey) + 1 {
		events = append(events, provider.Content(labKey[:i]), provider.Content(labKey[i:]+"\n"),
			provider.Delta(`"reasoning_content":`+world.JSON(labKey[:i])), provider.Delta(`"reasoning_content":`+world.JSON(labKey[i:]+" ")))
	}
	events = append(events, provider.Content(base64.StdEncoding.EncodeToString([]byte(labKey+"..."))+" "+url.QueryEscape(labKey)))
	arguments := bash("", "echo '"+labKey+"'; : "+strings.ReplaceAll(labKey, "/", `\/`)).Arguments
	events = append(events, provider.Tool(0, labKey, "tsh", ""))
	for i := range arguments {
		events = append(events, provider.Tool(0, "", "", arguments[i:i+1]))
	}
	events = append(events, provider.Tool(1, "d", labKey, `{}`), provider.Tool(2, "e", "tsh", `{"args":["`+labKey),
		provider.Finish("tool_calls"), provider.Done)
	return provider.Seq(provider.Head("X-Request-Id: "+labKey), provider.Events(events...), provider.End())
}

// TestKeyIsNowhere: the key of a provider is in the one file that ctxmodel reads
// it from, and in the header of its requests. It is in nothing else that the
// suite writes, whatever the provider echoes, and in nothing that the kernel
// shows of a process.
func TestKeyIsNowhere(t *testing.T) {
	var w *world.World
	looks := 0
	look := provider.Then(func() { looks += inProcesses(w) })
	refusal := `{"error":{"message":"wrong key ` + labKey + ` (Bearer ` + labKey + `)","type":"auth","code":"` + labKey + `"}}`
	w, s := lab(t, provider.InTurn(t,
		provider.Seq(look, provider.Calls(bash("c1", "tr '\\0' '\\n' < /proc/self/environ; cat /proc/*/cmdline /proc/*/environ | tr '\\0' ' '; env; mkfifo pipe; echo > begun; cat pipe"))),
		provider.Seq(look, provider.Text("read")),
		provider.Seq(look, provider.Status(401, "application/json", refusal, "X-Request-Id: "+labKey)),
		provider.Seq(look, provider.Status(500, "text/plain", "Authorization: Bearer "+labKey)),
		provider.Status(307, "text/plain", labKey, "Location: http://127.0.0.1:1/"+labKey),
		provider.Seq(provider.Head("X-Request-Id: "+labKey), provider.Events(provider.Content("Half")), look, provider.Events(refusal), provider.End()),
		provider.Seq(provider.Head(), provider.Events(labKey), provider.End()),
		provider.Raw("HTTP/1.1 "+labKey+"\r\n\r\n"),
		echoed(), provider.Text(labKey),
		provider.Status(401, "application/json", refusal),
		provider.Text("well"),
		provider.Seq(provider.Head("X-Request-Id: "+labKey), provider.Events(refusal), provider.End()),
	), "bash")
	c := w.Dial("m")
	c.Send(send("one", "s", w.Workspace, "look around"))
	w.AwaitExists(w.Workspace + "/begun")
	looks += inProcesses(w) // the tool runs, in a sandbox
	w.Write(w.Workspace+"/pipe", "go on\n")
	printed := world.JSON(c.Until("done"))
	for range 6 {
		frames := say(w, "again")
		if world.Last(frames).Str("status") != "error" {
			t.Errorf("%s", world.JSON(frames))
		}
		printed += world.JSON(frames)
	}
	printed += world.JSON(say(w, "and say it"))
	for _, args := range [][]string{
		{"provider", "test", "lab"}, {"agent", "send", "m", "the last one"}, {"model", "run", "--raw", "lab/m", "and this"},
		{"agent", "history", "--session", "s", "m"}, {"agent", "usage", "m"},
		{"agent", "prompt", "m"}, {"provider", "ls"}, {"model", "show", "lab/m"}, {"agent", "inspect", "m"}, {"doctor"},
	} {
		r := w.Ctx(args...)
		printed += r.Out + r.Err
	}
	looks += inProcesses(w)
	w.MustCtx("agent", "stop", "m")
	for _, form := range []string{labKey, base64.StdEncoding.EncodeToString([]byte(labKey)), url.QueryEscape(labKey)} {
		if strings.Contains(printed, form) {
			t.Errorf("it was printed, as %s:\n%s", form, printed)
		}
	}
	if !strings.Contains(printed, "[redacted]") || looks < 20 {
		t.Errorf("no echo was redacted, or %d processes were looked at", looks)
	}
	for _, r := range s.Requests() {
		if r.Header.Get("Authorization") != "Bearer "+labKey || bytes.Contains(r.Body, []byte(labKey)) {
			t.Errorf("%s %v", r.Path, r.Header)
		}
	}
	inFiles(w)
}

// inProcesses looks for the key in all that /proc shows of the processes of a
// world, and says how many those were.
func inProcesses(w *world.World) int {
	w.T.Helper()
	pids := w.Processes()
	for _, pid := range pids {
		dir := "/proc/" + strconv.Itoa(pid) + "/"
		for _, name := range []string{"environ", "cmdline", "comm", "status", "stat", "maps", "mountinfo", "auxv"} {
			if text, _ := os.ReadFile(dir + name); bytes.Contains(text, []byte(labKey)) {
				w.T.Errorf("the key is in %s%s", dir, name)
			}
		}
		links, _ := filepath.Glob(dir + "fd/*")
		for _, link := range append(links, dir+"cwd", dir+"exe", dir+"root") {
			if to, _ := os.Readlink(link); strings.Contains(to, labKey) {
				w.T.Errorf("the key is in %s", link)
			}
		}
	}
	return len(pids)
}

// inFiles looks for the key in every file of a world and in every name of one.
func inFiles(w *world.World) {
	w.T.Helper()
	held := 0
	for _, dir := range []string{w.Dir, w.Layout.Runtime} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if strings.Contains(d.Name(), labKey) {
				w.T.Errorf("the key is in the name %s", path)
			}
			if !d.Type().IsRegular() {
				return nil
			}
			text, err := os.ReadFile(path)
			if err == nil && bytes.Contains(text, []byte(labKey)) {
				if filepath.Dir(path) != w.Layout.Secrets+"/provider/lab" {
					w.T.Errorf("the key is in %s", path)
				}
				held++
			}
			return err
		})
		if err != nil {
			w.T.Error(err)
		}
	}
	if held != 1 {
		w.T.Errorf("the key is in %d files", held)
	}
}
