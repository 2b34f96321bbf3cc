package errdefs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

func TestKindOf(t *testing.T) {
	_, name := libctx.ParseAgent("../x")
	_, missing := os.Open(filepath.Join(t.TempDir(), "missing"))
	for what, c := range map[string]struct {
		err  error
		want errdefs.Kind
	}{
		"nil":                   {nil, ""},
		"typed":                 {errdefs.New(errdefs.Busy, "full"), errdefs.Busy},
		"typed, wrapped":        {fmt.Errorf("send: %w", errdefs.New(errdefs.Busy, "full")), errdefs.Busy},
		"the outermost decides": {errdefs.New(errdefs.IO, "ledger: %w", errdefs.New(errdefs.NotFound, "gone")), errdefs.IO},
		"over an errno":         {errdefs.New(errdefs.Protocol, "agent: %w", syscall.ENOENT), errdefs.Protocol},
		"a bad name":            {name, errdefs.Invalid},
		"a bad name, wrapped":   {fmt.Errorf("member id: %w", name), errdefs.Invalid},
		"no space":              {&fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}, errdefs.NoSpace},
		"quota":                 {syscall.EDQUOT, errdefs.NoSpace},
		"file size limit":       {syscall.EFBIG, errdefs.NoSpace},
		"permission":            {syscall.EPERM, errdefs.Denied},
		"read only":             {syscall.EROFS, errdefs.Denied},
		"missing file":          {missing, errdefs.NotFound},
		"a link in the way":     {syscall.ELOOP, errdefs.Invalid},
		"nobody listens":        {syscall.ECONNREFUSED, errdefs.Unavailable},
		"out of descriptors":    {syscall.EMFILE, errdefs.Busy},
		"device error":          {syscall.EIO, errdefs.IO},
		"any other errno":       {syscall.ENOTTY, errdefs.IO},
		"cancelled":             {fmt.Errorf("run: %w", context.Canceled), errdefs.Cancelled},
		"deadline":              {context.DeadlineExceeded, errdefs.Timeout},
		"not exist":             {fs.ErrNotExist, errdefs.NotFound},
		"not permitted":         {fs.ErrPermission, errdefs.Denied},
		"anything else":         {errors.New("odd"), errdefs.Internal},
		"joined":                {errors.Join(errors.New("odd"), errdefs.New(errdefs.Busy, "full")), errdefs.Busy},
	} {
		if got := errdefs.KindOf(c.err); got != c.want {
			t.Errorf("%s: %s, not %s", what, got, c.want)
		}
		if errdefs.Is(c.err, c.want) != (c.err != nil) {
			t.Errorf("%s: Is disagrees", what)
		}
	}
}

func TestCauseAndHint(t *testing.T) {
	inner := errdefs.New(errdefs.Unavailable, "no daemon: %w", syscall.ECONNREFUSED).WithHint("run %s", "ctxd serve")
	outer := fmt.Errorf("send: %w", errdefs.New(errdefs.IO, "coder: %w", inner))
	if !errors.Is(outer, syscall.ECONNREFUSED) {
		t.Error("the cause is lost")
	}
	if h := errdefs.HintOf(outer); h != "run ctxd serve" {
		t.Errorf("hint %q", h)
	}
	if h := errdefs.HintOf(errors.New("odd")); h != "" {
		t.Errorf("hint %q", h)
	}
	if got, want := outer.Error(), "send: coder: no daemon: connection refused"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// docs/reference/errors.md lists every kind with its exit code, and no other.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(E[A-Z0-9]+)` \\| ([0-9]+) \\|").FindAllStringSubmatch(string(page), -1) {
		documented[m[1]] = m[2]
	}
	source, err := os.ReadFile("errdefs.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`Kind += "(E[A-Z0-9]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(kinds) < 10 || len(kinds) != len(documented) {
		t.Errorf("%d kinds, %d in the page", len(kinds), len(documented))
	}
	for _, m := range kinds {
		exit := fmt.Sprint(errdefs.Kind(m[1]).Exit())
		if documented[m[1]] != exit {
			t.Errorf("%s exits %s, the page says %q", m[1], exit, documented[m[1]])
		}
		if !strings.Contains(" 1 2 13 69 70 130 ", " "+exit+" ") {
			t.Errorf("%s exits %s", m[1], exit)
		}
	}
}
