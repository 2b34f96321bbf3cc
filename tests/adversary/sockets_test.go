package adversary

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/hostile"
	"cortexfs.org/tests/internal/world"
)

// TestAbstractSockets: a socket of the host that has no file.
func TestAbstractSockets(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) []string {
		name := fmt.Sprintf("intruder-%d-%s", os.Getpid(), hostile.ID())
		l, err := net.Listen("unix", "@"+name)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return verb("abstract "+name, 6)(t, w)
	}, "sandbox:network,sandbox:confine")
}

// TestLoopback: a service of the host on its loopback.
func TestLoopback(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) []string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return verb("loopback "+l.Addr().String(), 2)(t, w)
	}, "sandbox:network")
}

// TestAgentSocket: the sockets of agents and of models, from inside.
func TestAgentSocket(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		link := w.Workspace + "/link.sock"
		if err := os.Symlink(w.Layout.Socket("a"), link); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{
			w.Layout.Socket("a"), w.Layout.Socket("b"), w.Root + "/agent/a.sock", "/ctx/agent/a.sock", "/ctx/agent/b.sock",
			w.Layout.ModelSocket(), "/run/cortexfs/agent/a.sock", "/run/cortexfs/model.sock", "/workspace/link.sock",
		} {
			out := hostile.Inside(w, hostile.Intruder+" say "+path+` '{"op":"ping"}'`)
			hostile.Tried(t, out, 2)
			if strings.Contains(out, "pong") {
				done = append(done, "speak to "+path)
			}
		}
		return done
	})
}

// TestEnvironment: what ctxd was started with.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		for range 2 { // in a sandbox that was launched, and in a prepared one
			out := hostile.Inside(w, `env; for p in /proc/[0-9]*; do tr '\0' '\n' <$p/environ; tr '\0' ' ' <$p/cmdline; done 2>/dev/null`)
			if !strings.Contains(out, "CTX_AGENT=a") {
				t.Errorf("no environment: %s", out)
			}
			for _, secret := range []string{"hunter2", w.Root, w.Runtime, w.Home + "\n"} {
				if strings.Contains(out, secret) {
					done = append(done, "find "+secret)
				}
			}
		}
		return done
	}, "sandbox:environment")
}
