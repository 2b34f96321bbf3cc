package fs

import (
	"context"
	"path"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/object"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// List is fs.list: the entries of a directory, sorted, then cut.
var List = tool.Tool{
	Name: "fs.list",
	Run:  list,
}

// defaultLimit is the number of entries shown if the call names none.
const defaultLimit = 1000

func list(ctx context.Context, args jsontext.Value, out *tool.Output) error {
	a := struct {
		Path      string `json:"path"`
		Recursive bool   `json:"recursive"`
		Depth     *int   `json:"depth"`
		Limit     *int   `json:"limit"`
		After     string `json:"after"`
	}{Path: "."}
	if err := tool.Decode(args, &a); err != nil {
		return err
	}
	base, err := object.Plain(a.Path)
	if err != nil {
		return err
	}
	l := lister{ctx: ctx, out: out, base: path.Clean(base), depth: 1, left: defaultLimit}
	if a.Recursive {
		l.depth = libctx.MaxListDepth
	}
	if err := bounded("depth", a.Depth, libctx.MaxListDepth, &l.depth); err != nil {
		return err
	}
	if err := bounded("limit", a.Limit, libctx.MaxListEntries, &l.left); err != nil {
		return err
	}
	after, err := l.resume(a.After)
	if err != nil {
		return err
	}
	fd, st, err := object.Locate(base)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if k := object.Kind(st.Mode); k != "dir" {
		return errdefs.New(errdefs.Invalid, "%s: is a %s, not a directory", object.Show(base), k).WithHint("fs.stat describes it")
	}
	dir, err := object.Reopen(base, st, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	total, err := l.directory(dir, "", after, 1)
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "%s: %w", object.Show(base), err)
	}
	l.notes(total)
	return nil
}

// bounded takes an optional whole number from 1 to max into to.
func bounded(name string, n *int, max int, to *int) error {
	if n == nil {
		return nil
	}
	if *n < 1 || *n > max {
		return errdefs.New(errdefs.Invalid, "arguments: %s is %d, not 1 to %d", name, *n, max)
	}
	*to = *n
	return nil
}

// resume turns the path after which the listing goes on into its components
// below base. It begins as base does, the way a listing prints it.
func (l *lister) resume(after string) ([]string, error) {
	if after == "" {
		return nil, nil
	}
	p, err := object.Plain(after)
	if err != nil {
		return nil, err
	}
	rel, ok := path.Clean(p), true
	if l.base != "." {
		rel, ok = strings.CutPrefix(rel, strings.TrimSuffix(l.base, "/")+"/")
	}
	if !ok || rel == "." || !filepath.IsLocal(rel) {
		return nil, errdefs.New(errdefs.Invalid, "arguments: after %s is not a path below %s", object.Show(p), object.Show(l.base)).
			WithHint("give it as the listing printed it, and path as before")
	}
	return strings.Split(rel, "/"), nil
}

// notes says what the listing left out.
func (l *lister) notes(total int) {
	switch {
	case l.cut && l.depth == 1:
		l.out.Notef("%d of %d entries; next: after=%s", l.shown, total, object.Show(l.last))
	case l.cut:
		l.out.Notef("%d entries, more follow; next: after=%s", l.shown, object.Show(l.last))
	case total == 0:
		l.out.Notef("empty directory")
	case l.shown == 0:
		l.out.Notef("nothing follows")
	}
	if l.deeper {
		l.out.Notef("nothing below %d levels is listed", libctx.MaxListDepth)
	}
	for _, p := range l.closed {
		l.out.Notef("not listed: %s", p)
	}
	if l.cut {
		l.out.Truncated()
	}
}
