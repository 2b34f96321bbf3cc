package fs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"math"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/object"
	"github.com/go-json-experiment/json/jsontext"
)

// Read is fs.read: lines of one UTF-8 text file, byte for byte, and the hash of
// all of it.
var Read = tool.Tool{
	Name: "fs.read",
	Run:  read,
}

func read(ctx context.Context, args jsontext.Value, out *tool.Output) error {
	a := struct {
		Path    string `json:"path"`
		Start   *int   `json:"start"`
		Lines   *int   `json:"lines"`
		Column  *int   `json:"column"`
		Numbers bool   `json:"numbers"`
	}{}
	if err := tool.Decode(args, &a); err != nil {
		return err
	}
	p, err := object.Plain(a.Path)
	if err != nil {
		return err
	}
	for _, n := range []struct {
		name  string
		value *int
	}{{"start", a.Start}, {"lines", a.Lines}, {"column", a.Column}} {
		if n.value != nil && *n.value < 1 {
			return errdefs.New(errdefs.Invalid, "arguments: %s is %d, less than 1", n.name, *n.value)
		}
	}
	first, end := 1, math.MaxInt
	if a.Start != nil {
		first = *a.Start
	}
	if a.Lines != nil && *a.Lines < end-first {
		end = first + *a.Lines
	}
	const room = libctx.MaxToolResult - tool.Reserve
	var v part = &view{first: first, end: end, numbers: a.Numbers, max: room, width: libctx.MaxLineShown}
	if a.Column != nil {
		if a.Lines != nil && *a.Lines != 1 {
			return errdefs.New(errdefs.Invalid, "arguments: column is about one line, and lines is %d", *a.Lines)
		}
		v = &stretch{line: first, column: *a.Column, numbers: a.Numbers, max: room}
	}
	f, st, err := object.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	if st.Size > libctx.MaxFileRead {
		return object.TooBig(p, st.Size)
	}
	sum := sha256.New()
	if err := scan(ctx, f, st.Size, v, sum, p); err != nil {
		return err
	}
	if v.total() < first && first > 1 {
		return errdefs.New(errdefs.Invalid, "%s: start %d is past the last line, %d", object.Show(p), first, v.total())
	}
	if err := v.check(p); err != nil {
		return err
	}
	out.Write(v.text())
	out.Notef("sha256 %s", hex.EncodeToString(sum.Sum(nil)))
	v.note(out)
	return nil
}

// part picks out of a text that passes by what a call is to show.
type part interface {
	take(p []byte) // the next piece, which ends between characters
	finish()       // the text has ended
	total() int    // its lines
	check(path string) error
	text() []byte
	note(out *tool.Output)
}

// scan passes a whole file through the hash and, in pieces that end between
// characters, through what picks a part of it, and refuses what is not text. Stated
// is the size it had when it was opened; it may grow, and reading ends at the limit all the same.
func scan(ctx context.Context, r io.Reader, stated int64, v part, sum hash.Hash, p string) error {
	buf := make([]byte, 128<<10)
	keep, size := 0, int64(0)
	for {
		if err := ctx.Err(); err != nil {
			return errdefs.New(errdefs.KindOf(err), "%s: %w", object.Show(p), context.Cause(ctx))
		}
		n, err := r.Read(buf[keep:])
		if size += int64(n); size > libctx.MaxFileRead {
			return object.TooBig(p, size)
		}
		sum.Write(buf[keep : keep+n])
		text := buf[:keep+n]
		whole := object.Boundary(text)
		if errors.Is(err, io.EOF) {
			whole = len(text)
		}
		if at := object.NotText(text[:whole]); at >= 0 {
			return errdefs.New(errdefs.Invalid, "%s: is a binary file of %d bytes: byte %d is not UTF-8 text",
				object.Show(p), max(size, stated), size-int64(len(text)-at))
		}
		v.take(text[:whole])
		keep = copy(buf, text[whole:])
		switch {
		case errors.Is(err, io.EOF):
			v.finish()
			return nil
		case err != nil:
			return errdefs.New(errdefs.KindOf(err), "%s: %w", object.Show(p), err)
		}
	}
}
