package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/toolwire"
	"golang.org/x/sys/unix"
)

// The test binary is ctxtool when it is started with this variable.
const asProgram = "TEST_AS_CTXTOOL"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Unsetenv(asProgram)
		main()
	}
	os.Exit(m.Run())
}

// toolFile makes a two-line file that the kernel interprets with this binary.
func toolFile(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Interpreter lines are short: the path of the binary may not be.
	dir := t.TempDir()
	link := filepath.Join(dir, "ctxtool")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, []byte("#!"+link+"\n"+name+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func program(file string, args ...string) *exec.Cmd {
	cmd := exec.Command(file, args...)
	cmd.Env = []string{asProgram + "=1", "PATH=/usr/bin:/bin"}
	return cmd
}

func TestKernelRunsToolFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("f", []byte("one\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	read := toolFile(t, "fs.read")
	out, err := program(read, "f", "--lines", "1").Output()
	if err != nil || string(out) != "one\n" {
		t.Errorf("%q, %v", out, err)
	}

	run := libctx.NewRun()
	cmd := program(read)
	cmd.Env = append(cmd.Env, "CTX_TOOL_MODE=json", "CTX_RUN_ID="+string(run))
	cmd.Stdin = strings.NewReader(`{"path":"f","start":2}` + "\n")
	out, err = cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if r, err := toolwire.Read(out, run); err != nil || r.Content() != "two\n[sha256 c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8]\n[lines 2-2 of 2]" || r.Tool != "fs.read" {
		t.Errorf("%+v, %v", r, err)
	}

	// Tools below a command speak to a person again.
	cmd = program(toolFile(t, "shell.exec"))
	cmd.Env = append(cmd.Env, "CTX_TOOL_MODE=json")
	cmd.Stdin = strings.NewReader(`{"cmd":"` + asProgram + `=1 ` + read + ` f"}` + "\n")
	out, err = cmd.Output()
	if r, rerr := toolwire.Read(out, ""); err != nil || rerr != nil || r.Text[:8] != "one\ntwo\n" {
		t.Errorf("%q, %v, %v", out, err, rerr)
	}
}

func TestSignalEndsTheCommandToo(t *testing.T) {
	cmd := program(toolFile(t, "shell.exec"), "echo $$; sleep 100")
	fifo := filepath.Join(t.TempDir(), "started")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Args[1] = "echo >" + fifo + "; sleep 100"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(fifo); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	cmd.Process.Signal(unix.SIGTERM)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit %d", code)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// This program starts for every call of a built-in tool, so it links nothing
// that takes long to start.
func TestStartsQuickly(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("no build information")
	}
	for _, dep := range info.Deps {
		if strings.Contains(dep.Path, "jsonschema") || strings.Contains(dep.Path, "urfave") {
			t.Errorf("%s is linked", dep.Path)
		}
	}
	if len(info.Deps) == 0 {
		t.Error("the build information names no module at all")
	}
}
