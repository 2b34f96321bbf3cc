package bench

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/seccomp"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/workspace"
	"golang.org/x/sys/unix"
)

// recipe is the sandbox of the agent as the daemon asks bubblewrap for it, but
// started here: no gate, no records, no entry step.
type recipe struct {
	s      *suite
	spec   sandbox.Spec
	host   sandbox.Host
	filter []byte
	free   func()
}

func (s *suite) recipe() *recipe {
	s.Helper()
	a, err := view.Load(s.w.Layout, agent)
	s.must(err)
	prepared, err := a.Prepare(s.w.Layout, true)
	s.must(err)
	id := asuser.Self()
	ws, err := workspace.Resolve(s.w.Workspace, id, s.w.Layout.Protected(), workspace.Protect{})
	s.must(err)
	spec := sandbox.Spec{
		Identity: id, View: prepared.Dir, Tools: filepath.Join(s.w.Bin, "ctxtool"), Tsh: filepath.Join(s.w.Bin, "tsh"),
		Home: s.w.Layout.AgentHome(id.UID, agent), Workspace: ws, Env: a.Environ("CTX_STEP=0", "CTX_RUN_ID=floor"),
	}
	s.must(os.MkdirAll(spec.Home+"/session", 0o700))
	filter, err := seccomp.Filter()
	s.must(err)
	return &recipe{s: s, spec: spec, host: host(), filter: filter, free: prepared.Release}
}

// host is what bubblewrap has to show of this machine.
func host() (h sandbox.Host) {
	for _, p := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if link, err := os.Readlink(p); err == nil {
			h.Roots = append(h.Roots, sandbox.Root{Path: p, Link: link})
		} else if _, err := os.Stat(p); err == nil {
			h.Roots = append(h.Roots, sandbox.Root{Path: p})
		}
	}
	for _, pattern := range []string{"ld.so.conf.d", "alternatives", "ssl/certs", "ca-certificates", "pki/tls/certs",
		"pki/ca-trust", "crypto-policies", "python3*", "perl", "java-*"} {
		found, _ := filepath.Glob("/etc/" + pattern)
		for _, p := range found {
			if st, err := os.Stat(p); err == nil && st.IsDir() {
				h.EtcDirs = append(h.EtcDirs, strings.TrimPrefix(p, "/etc/"))
			}
		}
	}
	return h
}

// run starts a payload in a sandbox and waits for its end. It may be called
// from several goroutines.
func (r *recipe) run(stdin string, argv ...string) {
	cmd := exec.Command("bwrap")
	give := func(f *os.File) int {
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		return len(cmd.ExtraFiles) + 2
	}
	memory := func(data []byte) int {
		fd, err := unix.MemfdCreate("floor", unix.MFD_CLOEXEC)
		f := os.NewFile(uintptr(fd), "floor")
		if err == nil {
			_, err = f.Write(data)
		}
		if err == nil {
			_, err = f.Seek(0, 0)
		}
		if err != nil {
			r.s.Error(err)
		}
		return give(f)
	}
	fd := sandbox.FDs{Seccomp: memory(r.filter)}
	for path, text := range sandbox.Accounts(r.spec) {
		fd.Files = append(fd.Files, sandbox.File{FD: memory([]byte(text)), Path: path})
	}
	for _, path := range sandbox.Copied(r.spec) {
		if f, err := os.Open(path); err == nil {
			fd.Files = append(fd.Files, sandbox.File{FD: give(f), Path: path})
		}
	}
	cmd.Args = append(cmd.Args, plain(sandbox.Options(r.spec, r.host, fd))...)
	for _, kv := range r.spec.Env {
		k, v, _ := strings.Cut(kv, "=")
		cmd.Args = append(cmd.Args, "--setenv", k, v)
	}
	cmd.Args = append(append(cmd.Args, "--chdir", "/workspace", "--"), argv...)
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	if err != nil {
		r.s.Errorf("bwrap %s: %v: %s", argv, err, out.Bytes())
	}
}

// plain leaves out what lets a launcher accompany the launch.
func plain(options []string) (words []string) {
	for i := 0; i < len(options); i++ {
		if o := options[i]; o == "--json-status-fd" || o == "--block-fd" {
			i++
		} else {
			words = append(words, o)
		}
	}
	return words
}

// tool runs the built-in tool of that file.
func (r *recipe) tool() { r.run(`{"path":"README.md"}`+"\n", paths.InRoot+"/tool/fs.read") }

// step runs the agent's executable once.
func (r *recipe) step() {
	r.run(`{"schema":"sdk-envelope-v1","run":"floor","step":0,"input":"say hello"}`+"\n", paths.InRoot+"/agent/"+string(agent))
}

// trivial runs true in the smallest sandbox worth the name.
func (s *suite) trivial() {
	cmd := exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("bwrap: %v: %s", err, out)
	}
}
