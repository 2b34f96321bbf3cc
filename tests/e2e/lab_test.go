package e2e

import (
	"strings"
	"testing"

	provider "cortexfs.org/tests/internal/scripted"
	"cortexfs.org/tests/internal/world"
)

// labKey is the key of the provider lab.
const labKey = "Zq9-the-key-of-the-lab-7741/+=xY"

// lab makes a world with a provider that answers as reply says, reached as a
// person sets it up, and the agent m on its model, with these tools as for
// modelled. In the end every request the provider got must have been well formed.
func lab(t *testing.T, reply func(*provider.Request) provider.Answer, tools ...string) (*world.World, *provider.Server) {
	t.Helper()
	w := world.NewUser(t)
	s := addLab(w, "lab", reply)
	return manned(w, "lab/m", tools...), s
}

// addLab is one more such provider.
func addLab(w *world.World, name string, reply func(*provider.Request) provider.Answer) *provider.Server {
	w.T.Helper()
	s := provider.New(w.T, reply)
	w.T.Cleanup(func() {
		for i, r := range s.Requests() {
			if err := r.Chat(w.T).Paired(); err != nil {
				w.T.Errorf("request %d of %s: %v\n%.4000s", i+1, name, err, r.Body)
			}
		}
	})
	w.MustCtx("provider", "add", name, "--base-url", s.URL, "--model", "m", "--limit", "200000")
	key := w.Command("ctx", "provider", "key", name)
	key.Stdin = strings.NewReader(labKey + "\n")
	if r := w.Run(key); r.Code != 0 {
		w.T.Fatalf("ctx provider key: %s", r.Err)
	}
	return s
}

// bash is a call of bash through tsh, as a provider sends it.
func bash(id, line string) provider.Call {
	return provider.Call{ID: id, Name: "tsh", Arguments: world.JSON(map[string]any{"args": []string{"bash", "-c", line}})}
}
