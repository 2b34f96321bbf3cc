package hook

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSandbox: before a call a hook changes nothing, after it what the agent could
// have changed; neither finds anything that the agent wrote for itself, nor its own
// file, nor can it write the copy that it is.
func TestSandbox(t *testing.T) {
	w := newWorld(t)
	w.ok(os.WriteFile(filepath.Join(w.ws, "evil"), []byte("echo evil >/workspace/was-here; exit 0\n"), 0o755))
	look := `
{ id -u; echo "$HOME $PWD $SECRET$BASH_ENV $CTX_AGENT $CTX_SESSION $CTX_RUN_ID"
ls -A "$HOME" /home/agent /run/cortexfs
ls /ctx/agent /ctx/agent/coder.d | tr '\n' ' '; echo
echo x >/workspace/made && echo wrote
echo x >>/proc/self/fd/3 && echo seal broken
chmod u+w /proc/self/fd/3; : >/proc/self/fd/3 && echo seal broken
ls /proc/$$/fd | tr '\n' ' '; echo
grep -c . /proc/self/fd/3 >/dev/null && echo reads itself
} 2>/dev/null
exit 1`
	w.script(pre, "10", look)
	w.script(post, "10", look)
	_, err := w.Pre(t.Context(), w.call("{}"))
	if err == nil {
		t.Fatal("it did not fail")
	}
	for _, want := range []string{strconv.Itoa(int(w.id.UID)), "/tmp /  coder default 01KB9QZ3M8T5V2N7X4C6D1E0FG"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %s", want, err)
		}
	}
	for _, not := range []string{"hooks", "wrote", "seal broken", "evil", "secret"} {
		if strings.Contains(strings.TrimPrefix(err.Error(), pre), not) {
			t.Errorf("%q is in %s", not, err)
		}
	}
	failed := w.Post(t.Context(), w.call("{}"), "ok")
	if len(failed) != 1 || !strings.Contains(failed[0].Reason, "wrote") || strings.Contains(failed[0].Reason, "hooks") || strings.Contains(failed[0].Reason, "broken") {
		t.Errorf("%+v", failed)
	}
	if w.made("was-here") != "" {
		t.Error("a file of the workspace was executed")
	}
}
