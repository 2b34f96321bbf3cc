package edit

import (
	"bytes"
	"context"
	"fmt"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/object"
	"github.com/go-json-experiment/json/jsontext"
)

// Write is fs.write: the whole content of one file.
var Write = tool.Tool{
	Name: "fs.write",
	Run:  write,
}

func write(ctx context.Context, args jsontext.Value, out *tool.Output) error {
	a := struct {
		Path     string  `json:"path"`
		Content  *string `json:"content"`
		Expected string  `json:"expected_hash"`
	}{}
	if err := tool.Decode(args, &a); err != nil {
		return err
	}
	p, err := object.Plain(a.Path)
	switch {
	case err != nil:
		return err
	case a.Content == nil:
		return errdefs.New(errdefs.Invalid, "arguments: content is missing")
	case len(*a.Content) > libctx.MaxFileRead:
		return object.TooBig(p, int64(len(*a.Content)))
	}
	t, err := find(ctx, p, a.Expected == "")
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.expect(a.Expected); err != nil {
		return err
	}
	content := []byte(*a.Content)
	if t.there && bytes.Equal(content, t.old) {
		fmt.Fprintf(out, "%s: unchanged\n", object.Show(p))
		out.Notef("sha256 %s", sha(content))
		return nil
	}
	if err := t.commit(ctx, content); err != nil {
		return err
	}
	switch {
	case !t.there:
		fmt.Fprintf(out, "%s: created, %s, %d bytes\n", object.Show(p), count(len(lines(content)), "line"), len(content))
	case object.NotText(t.old) >= 0 || object.NotText(content) >= 0:
		fmt.Fprintf(out, "%s: replaced, %d bytes; before it was %d bytes\n", object.Show(p), len(content), len(t.old))
	default:
		show(out, p, t.old, changes(lines(t.old), lines(content)))
	}
	out.Notef("sha256 %s", sha(content))
	return nil
}

// count is a number of things in words.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
