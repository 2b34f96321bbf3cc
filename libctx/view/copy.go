package view

import (
	"errors"
	"io/fs"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// copyControl copies the agent's control files.
func (a *Agent) copyControl(l paths.Layout, root *atomicfile.Dir, b *builder, src *sources) error {
	dir := "agent/" + string(a.Name) + ".d"
	text := map[string][]byte{}
	var seen []entry
	err := a.withControl(l, root, func(d *atomicfile.Dir) error {
		var st unix.Stat_t
		if err := unix.Fstat(d.FD(), &st); err != nil {
			return err
		}
		files, err := list(d, ".", inView)
		if err != nil {
			return err
		}
		for _, f := range files {
			t, fst, err := read(d, f.name, dir+"/"+f.name, st.Uid, libctx.MaxControlFile)
			if errdefs.Is(err, errdefs.NotFound) {
				return errChanged
			}
			if err != nil {
				return err
			}
			text[f.name] = t
			seen = append(seen, entry{f.name, fst})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if fingerprint(seen) != src.control {
		return errChanged
	}
	for _, f := range seen {
		if err := b.write(dir+"/"+f.name, text[f.name], 0o444); err != nil {
			return err
		}
	}
	return nil
}

// withControl runs fn with the agent's control directory, as whoever owns it.
func (a *Agent) withControl(l paths.Layout, root *atomicfile.Dir, fn func(*atomicfile.Dir) error) error {
	name := "agent/" + string(a.Name) + ".d"
	d, err := openControl(l, root, name)
	if err != nil {
		return err
	}
	defer d.Close()
	var st unix.Stat_t
	if err := unix.Fstat(d.FD(), &st); err != nil {
		return errdefs.New(errdefs.IO, "%s: %w", name, err)
	}
	id, err := readerOf(l, name, &st)
	if err != nil {
		return err
	}
	return id.Do(func() error { return fn(d) })
}

// copyStatus copies the tree's status file, by which a tree is known as one.
func copyStatus(root *atomicfile.Dir, b *builder) error {
	text, err := root.ReadFile("status", libctx.MaxControlFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errdefs.New(errdefs.KindOf(err), "status: %w", bare(err))
	}
	return b.write("status", text, 0o444)
}

// copyTool copies one tool if admission lets the agent see it. What is copied
// is what was opened and judged.
func (a *Agent) copyTool(root *atomicfile.Dir, b *builder, src source) error {
	t := src.tool
	if t == nil || fault.Off("view:opened") {
		t = a.load(root, src.dir, src.name)
		defer t.Close()
	}
	if t.Kind != admit.Regular {
		// It was refused as it stood, or it changed just now; either way the
		// view is right without it, and a change gives another key.
		return nil
	}
	if t.print != src.print && !fault.Off("view:opened") {
		return errChanged
	}
	if !admit.Shown(a.Facts(), t.Tool) {
		return nil
	}
	rel := strings.TrimPrefix(t.Path, paths.InRoot+"/")
	if err := b.copy(rel, t.file, &t.stat); err != nil {
		return err
	}
	if err := b.mkdirAll(rel + ".d"); err != nil {
		return err
	}
	for name, text := range t.text {
		if err := b.write(rel+".d/"+name, text, 0o444); err != nil {
			return err
		}
	}
	return nil
}
