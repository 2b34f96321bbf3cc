package edit

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/object"
	"github.com/go-json-experiment/json/jsontext"
)

// Replace is fs.replace: one text, or every occurrence of it, by another.
var Replace = tool.Tool{
	Name: "fs.replace",
	Run:  replace,
}

func replace(ctx context.Context, args jsontext.Value, out *tool.Output) error {
	a := struct {
		Path     string  `json:"path"`
		Old      string  `json:"old"`
		New      *string `json:"new"`
		All      bool    `json:"all"`
		Expected string  `json:"expected_hash"`
	}{}
	if err := tool.Decode(args, &a); err != nil {
		return err
	}
	p, err := object.Plain(a.Path)
	switch {
	case err != nil:
		return err
	case a.Old == "":
		return errdefs.New(errdefs.Invalid, "arguments: old is missing or empty").WithHint("fs.write replaces a whole file")
	case a.New == nil:
		return errdefs.New(errdefs.Invalid, "arguments: new is missing")
	case a.Old == *a.New:
		return errdefs.New(errdefs.Invalid, "arguments: old and new are the same")
	}
	t, err := find(ctx, p, false)
	if err != nil {
		return err
	}
	defer t.close()
	if !t.there {
		return errdefs.New(errdefs.NotFound, "%s: no such file", object.Show(p)).WithHint("fs.write creates files")
	}
	if err := t.expect(a.Expected); err != nil {
		return err
	}
	if at := object.NotText(t.old); at >= 0 {
		return errdefs.New(errdefs.Invalid, "%s: is a binary file of %d bytes: byte %d is not UTF-8 text", object.Show(p), len(t.old), at)
	}
	mark, body := t.old[:0], t.old
	if rest, ok := bytes.CutPrefix(body, byteOrderMark); ok {
		mark, body = byteOrderMark, rest
		a.Old = strings.TrimPrefix(a.Old, string(byteOrderMark))
		*a.New = strings.TrimPrefix(*a.New, string(byteOrderMark))
	}
	old, new := fit(body, a.Old, *a.New)
	n := 0
	if old != "" {
		n = bytes.Count(body, []byte(old))
	}
	switch {
	case n == 0:
		return missing(p, body, a.Old)
	case old == new:
		return errdefs.New(errdefs.Invalid, "arguments: old and new are the same in this file")
	case !a.All && ambiguous(body, old):
		return several(p, body, old)
	}
	if size := int64(len(t.old)) + int64(n)*int64(len(new)-len(old)); size > libctx.MaxFileRead {
		return object.TooBig(p, size)
	}
	content := append(mark[:len(mark):len(mark)], bytes.ReplaceAll(body, []byte(old), []byte(new))...)
	if err := t.commit(ctx, content); err != nil {
		return err
	}
	show(out, p, t.old, edits(t.old, len(mark), old, new))
	if n > 1 {
		out.Notef("%d occurrences replaced", n)
	}
	out.Notef("sha256 %s", sha(content))
	return nil
}

var byteOrderMark = []byte("\uFEFF")

// fit gives old and new the line endings of the text. Where all lines end in
// CRLF both get those; elsewhere old is tried as it is, then with the other
// ending, and new goes with it.
func fit(text []byte, old, new string) (string, string) {
	lfs, crlfs := bytes.Count(text, lf), bytes.Count(text, []byte("\r\n"))
	switch {
	case crlfs > 0 && crlfs == lfs:
		return toCRLF(old), toCRLF(new)
	case bytes.Contains(text, []byte(old)):
	case crlfs > 0 && bytes.Contains(text, []byte(toCRLF(old))):
		return toCRLF(old), toCRLF(new)
	case bytes.Contains(text, []byte(toLF(old))):
		return toLF(old), toLF(new)
	}
	return old, new
}

func toLF(s string) string   { return strings.ReplaceAll(s, "\r\n", "\n") }
func toCRLF(s string) string { return strings.ReplaceAll(toLF(s), "\n", "\r\n") }

// ambiguous reports whether old is there more than once; occurrences that share
// bytes count.
func ambiguous(text []byte, old string) bool {
	first := bytes.Index(text, []byte(old))
	return bytes.Contains(text[first+1:], []byte(old))
}

// several is the error of an old text that does not say which one is meant.
func several(p string, text []byte, old string) error {
	const most = 20
	var at []string
	n, line, from := 0, 1, 0
	for pos := 0; ; {
		i := bytes.Index(text[pos:], []byte(old))
		if i < 0 {
			break
		}
		pos += i
		line += bytes.Count(text[from:pos], lf)
		from = pos
		if n++; n <= most {
			at = append(at, fmt.Sprint(line))
		}
		pos++
	}
	list := strings.Join(at, ", ")
	if n > most {
		list += ", …"
	}
	return errdefs.New(errdefs.Invalid, "%s: old occurs %d times, on lines %s", object.Show(p), n, list).
		WithHint("add lines around it until only one place is meant, or pass all")
}

// edits are the replacements as changes of lines, as many as a diff can show.
func edits(text []byte, from int, old, new string) []change {
	var all []change
	line, counted := 0, 0
	for at := from; len(all) < libctx.MaxDiff/8; {
		i := bytes.Index(text[at:], []byte(old))
		if i < 0 {
			break
		}
		at += i
		begin := bytes.LastIndexByte(text[:at], '\n') + 1
		line += bytes.Count(text[counted:begin], lf)
		counted = begin
		// Everything that is replaced in the same lines is one change.
		var fresh []byte
		end := begin
		for i = 0; i >= 0; {
			at += i
			fresh = append(append(fresh, text[end:at]...), new...)
			at += len(old)
			end = at
			if whole := bytes.HasSuffix(fresh, lf) || len(fresh) == 0; whole && text[at-1] == '\n' {
				break
			}
			stop := len(text)
			if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
				stop = at + n + 1
			}
			reach := min(stop-1+len(old), len(text))
			if i = bytes.Index(text[at:reach], []byte(old)); i < 0 {
				fresh = append(fresh, text[end:stop]...)
				end = stop
			}
		}
		n := len(lines(text[begin:end]))
		all = append(all, change{line, line + n, lines(fresh)})
		at = max(at, end)
	}
	return all
}
