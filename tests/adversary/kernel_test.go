package adversary

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/hostile"
	"cortexfs.org/tests/internal/world"
)

// verb is an attack by one verb of the intruder, from both kinds of sandboxes.
func verb(words string, tries int) hostile.Attack {
	return func(t *testing.T, w *world.World) []string {
		return hostile.Did(hostile.Tried(t, hostile.Inside(w, hostile.Intruder+" "+words), tries))
	}
}

// TestNamespaces: new user namespaces, and all others.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, verb("namespaces", 50), "sandbox:namespaces+sandbox:filter")
}

// TestMounts: mounts, and what is mounted made writable.
func TestMounts(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, verb("mounts", 30), "sandbox:namespaces+sandbox:filter")
}

// TestTyping: input pushed into a terminal (TIOCSTI).
func TestTyping(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, verb("input", 10))
}

// TestKeys: a key that is kept where every process of the user finds it.
func TestKeys(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, verb("keys", 6), "sandbox:filter")
}

// TestProcesses: /proc/PID/root, fd and mem, ptrace and signals, of every process
// that can be named: those inside, and those of the host by their numbers.
func TestProcesses(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) []string {
		lines := []string{hostile.Intruder + " process 1"}
		for _, pid := range append(w.Processes(), os.Getpid()) {
			lines = append(lines, hostile.Intruder+" process "+strconv.Itoa(pid))
		}
		out := hostile.Inside(w, strings.Join(lines, "\n")+"\n"+hostile.Intruder+" outside")
		var done []string
		for _, what := range hostile.Did(hostile.Tried(t, out, 50)) {
			switch {
			case harmless(what):
			default:
				done = append(done, what)
			}
		}
		if out := w.MustCtx("agent", "send", "b", "say alive"); out != "alive\n" {
			done = append(done, "stop b")
		}
		return done
	}, "sandbox:filter")
}

// harmless is what may be done to the first process of one's own sandbox: it has
// nothing, and its end ends the sandbox and nothing else.
func harmless(what string) bool {
	rest, ok := strings.CutSuffix(what, "/proc/1")
	if !ok {
		rest, _, ok = strings.Cut(what, "/proc/1/")
	}
	if !ok {
		return false
	}
	switch strings.TrimSpace(rest) {
	case "read", "list", "follow", "open", "limit", "kill", "stop":
		return true
	}
	return false
}

// TestDescriptors: what is open in a new process.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		for range 2 { // in a sandbox that was launched, and in a prepared one
			for _, out := range []string{
				result(w, "intruder", "fds"), hostile.ByAgent(w, hostile.Intruder+" fds"), hostile.ByTool(w, hostile.Intruder+" fds"),
			} {
				seen := 0
				for line := range strings.Lines(out) {
					f := strings.Fields(line)
					if len(f) != 3 || f[0] != "fd" {
						continue
					}
					seen++
					if n, err := strconv.Atoi(f[1]); err != nil || n > 2 || f[2] != "/dev/null" && !strings.HasPrefix(f[2], "pipe:") {
						done = append(done, "hold "+line)
					}
				}
				if seen != 3 {
					t.Errorf("%d descriptors: %s", seen, out)
				}
			}
		}
		return done
	})
}

// result is what a call of a tool came to.
func result(w *world.World, args ...string) string {
	w.T.Helper()
	f := w.Dial("a").Ask(hostile.Tsh(w, args...), "done")
	return hostile.Result(f).Str("content")
}
