package units

import (
	"os"
	"path/filepath"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

func TestNames(t *testing.T) {
	for name, want := range map[libctx.Agent]string{
		"coder": "ctxd@coder.socket", "a-b": "ctxd@a-b.socket", "a_b.c": "ctxd@a_b.c.socket",
		"a+b": "", "../a": "", "": "",
	} {
		got, err := Socket(name)
		if got != want || (want == "") != errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

func TestNetworkDropIn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ctxd@coder.service.d", dropIn)
	step := func(open, want bool) {
		t.Helper()
		changed, err := SetNetwork(dir, "coder", open)
		if err != nil || changed != want {
			t.Fatalf("open %v: changed %v, %v", open, changed, err)
		}
		text, err := os.ReadFile(file)
		if (err == nil) != open || open && string(text) != network {
			t.Fatalf("open %v: %q, %v", open, text, err)
		}
	}
	step(false, false)
	step(true, true)
	step(true, false)
	step(false, true)
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
	step(true, true)
	// The administrator's file beside it stays.
	other := filepath.Join(filepath.Dir(file), "limits.conf")
	if err := os.WriteFile(other, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	step(false, true)
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	// One that was edited is written anew.
	if err := os.WriteFile(file, []byte("[Service]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	step(true, true)
	if _, err := SetNetwork(filepath.Join(dir, "none"), "coder", false); err != nil {
		t.Error(err)
	}
	if _, err := SetNetwork(filepath.Join(dir, "none"), "coder", true); !errdefs.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
	if _, err := SetNetwork(dir, "a+b", true); !errdefs.Is(err, errdefs.Invalid) {
		t.Error(err)
	}
}
