package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/config"
	"cortexfs.org/ctx/internal/output"
)

// doctor runs ctx doctor with programs beside ctx that need not do anything.
func (w *world) doctor(args ...string) result {
	w.t.Helper()
	bin := w.t.TempDir()
	for _, name := range []string{"ctx", "ctxd", "ctxtool"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	from := &caller.Caller{
		Printer: &output.Printer{Out: &out, Err: &errs},
		Config:  config.Config{Paths: w.env, Cwd: w.dir, Exe: filepath.Join(bin, "ctx")},
	}
	what, err := run(context.Background(), append([]string{"doctor"}, args...), from)
	return result{exit(from.Printer, what, err), out.String(), errs.String()}
}

func TestDoctor(t *testing.T) {
	w := newWorld(t)
	got := w.doctor()
	if got.code != 0 || got.err != "" || strings.Contains(got.out, "\tbroken\t") {
		t.Errorf("a healthy tree: %+v", got)
	}
	for _, check := range []string{"tree", "tools", "agents", "runtime", "ctxd", "ctxtool", "bubblewrap", "namespaces", "activator", "disk", "clock"} {
		if !strings.Contains("\n"+got.out, "\n"+check+"\t") {
			t.Errorf("nothing was said of %s:\n%s", check, got.out)
		}
	}
	if got := w.doctor("--json"); !strings.Contains(got.out, `{"check":"namespaces","state":"ok","detail":"a sandbox starts","remedy":""}`) {
		t.Errorf("%+v", got)
	}

	policy := filepath.Join(w.layout.Control("coder"), "policy")
	if err := errors.Join(
		os.Chmod(w.layout.Tools(), 0o777), os.Chmod(policy, 0o666),
		os.WriteFile(filepath.Join(w.layout.Tools(), "fs.read.d/effect"), []byte("pure\n"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	got = w.doctor()
	for _, part := range []string{
		"tree\tbroken\t" + w.layout.Tools() + " can be written by others (mode 0777)\tchmod go-w " + w.layout.Tools(),
		"tools\twarn\t1 files of built-in tools are missing or changed\tctx init",
		"agents\tbroken\t", "policy",
	} {
		if got.code != 1 || !strings.Contains(got.out, part) {
			t.Errorf("exit %d, lacks %q:\n%s", got.code, part, got.out)
		}
	}
	if err := os.RemoveAll(w.layout.Root); err != nil {
		t.Fatal(err)
	}
	if got := w.doctor(); got.code != 1 || !strings.Contains(got.out, "is not a tree\tctx init") {
		t.Errorf("no tree: %+v", got)
	}
}
