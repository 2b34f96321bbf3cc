package search

import (
	"context"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/object"
	"github.com/bmatcuk/doublestar/v4"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// Search is fs.search. A search that takes longer than limit, or than
// libctx.SearchTimeout if that is less or limit is 0, ends with what it found.
func Search(limit time.Duration) tool.Tool {
	if limit == 0 || limit > libctx.SearchTimeout {
		limit = libctx.SearchTimeout
	}
	return tool.Tool{
		Name: "fs.search",
		Run: func(ctx context.Context, args jsontext.Value, out *tool.Output) error {
			s, err := prepare(args)
			if err != nil {
				return err
			}
			return s.run(ctx, limit, out)
		},
	}
}

// defaultLimit is the number of matching lines shown if the call names none.
const defaultLimit = 100

// maxBatch is the number of entries of a directory that are held at once.
const maxBatch = 1 << 18

// search is one call.
type search struct {
	base    string
	matcher *matcher
	walk    walk
	context int
	limit   int
}

func prepare(args jsontext.Value) (*search, error) {
	a := struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
		Mode    string `json:"mode"`
		Glob    string `json:"glob"`
		Case    string `json:"case"`
		Context int    `json:"context"`
		Hidden  bool   `json:"hidden"`
		Ignore  bool   `json:"ignore"`
		Limit   int    `json:"limit"`
	}{Path: ".", Mode: "literal", Case: "sensitive", Ignore: true, Limit: defaultLimit}
	if err := tool.Decode(args, &a); err != nil {
		return nil, err
	}
	base, err := object.Plain(a.Path)
	if err != nil {
		return nil, err
	}
	invalid := func(format string, args ...any) (*search, error) {
		return nil, errdefs.New(errdefs.Invalid, "arguments: "+format, args...)
	}
	switch {
	case a.Pattern == "":
		return invalid("pattern is missing or empty")
	case len(a.Pattern) > libctx.MaxSearchPattern:
		return invalid("pattern has %d bytes, the limit is %d", len(a.Pattern), libctx.MaxSearchPattern)
	case a.Mode != "literal" && a.Mode != "regex":
		return invalid("mode is %.40q, not literal or regex", a.Mode)
	case a.Case != "sensitive" && a.Case != "ignore" && a.Case != "smart":
		return invalid("case is %.40q, not sensitive, ignore or smart", a.Case)
	case a.Context < 0 || a.Context > libctx.MaxSearchContext:
		return invalid("context is %d, not 0 to %d", a.Context, libctx.MaxSearchContext)
	case a.Limit < 1 || a.Limit > libctx.MaxSearchMatches:
		return invalid("limit is %d, not 1 to %d", a.Limit, libctx.MaxSearchMatches)
	}
	glob, not := strings.CutPrefix(a.Glob, "!")
	if len(glob) > libctx.MaxSearchPattern || !doublestar.ValidatePattern(glob) || not && glob == "" {
		return invalid("glob %.80q is no pattern", a.Glob)
	}
	fold := a.Case == "ignore" || a.Case == "smart" && !strings.ContainsFunc(a.Pattern, unicode.IsUpper)
	m, err := compile(a.Pattern, a.Mode == "literal", fold)
	if err != nil {
		return nil, err
	}
	return &search{
		base: base, matcher: m, context: a.Context, limit: a.Limit,
		walk: walk{glob: glob, not: not, hidden: a.Hidden, ignore: a.Ignore, batch: maxBatch},
	}, nil
}

func (s *search) run(ctx context.Context, limit time.Duration, out *tool.Output) error {
	fd, st, err := object.Locate(s.base)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r := result{out: out, limit: s.limit, context: s.context}
	switch k := object.Kind(st.Mode); k {
	case "dir":
		err = s.tree(ctx, limit, st, &r)
	case "file":
		err = s.file(ctx, &r)
	default:
		return errdefs.New(errdefs.Invalid, "%s: is a %s, not a file or directory", object.Show(s.base), k)
	}
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return object.Explain(s.base, context.Cause(ctx))
	}
	r.notes(s, limit)
	return nil
}

// file searches the one file that was named, whatever it is called.
func (s *search) file(ctx context.Context, r *result) error {
	f, _, err := object.Open(s.base)
	if err != nil {
		return err
	}
	defer f.Close()
	read := reader{matcher: s.matcher, ctx: ctx, context: s.context, limit: s.limit}
	r.add(read.open(int(f.Fd()), shown(s.base, "")))
	return nil
}

// job is one file on its way from the walk through a worker to the result.
type job struct {
	dir       *shared
	name, rel string
	done      chan found // takes one
}

// ahead is the number of files that may be found before their turn.
const ahead = 64

// tree searches a directory: a walk finds files, workers search them, and their
// results are taken in the order of the walk. When it returns all have ended.
func (s *search) tree(ctx context.Context, limit time.Duration, st unix.Stat_t, r *result) error {
	dir, err := object.Reopen(s.base, st, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer dir.Close()
	if object.Pseudo(int(dir.Fd())) {
		return errdefs.New(errdefs.Invalid, "%s: lies on a file system of the kernel, which stores no files", object.Show(s.base))
	}
	top, err := object.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return object.Explain(s.base, err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	jobs, order := make(chan *job, ahead), make(chan *job, ahead)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 8) {
		workers.Go(func() {
			read := reader{matcher: s.matcher, ctx: ctx, context: s.context, limit: s.limit}
			for j := range jobs {
				j.done <- read.search(j.dir.fd, j.name, shown(s.base, j.rel))
				j.dir.release()
			}
		})
	}
	w := &s.walk
	w.ctx = ctx
	w.emit = func(dir *shared, name, rel string) bool {
		j := &job{dir, name, rel, make(chan found, 1)}
		select {
		case order <- j:
			jobs <- j // has as much room as order
			return true
		case <-ctx.Done():
			dir.release()
			return false
		}
	}
	workers.Go(func() {
		defer close(order)
		defer close(jobs)
		var rules *rules
		from := ""
		if cwd, err := os.Getwd(); w.ignore && err == nil {
			at := path.Clean(s.base)
			if !path.IsAbs(at) {
				at = path.Join(cwd, at)
			}
			rules, from = above(at, cwd)
		}
		w.directory(top, "", from, rules, 1)
	})
	for j := range order {
		if f := <-j.done; !r.full {
			if r.add(f); r.full {
				cancel() // the rest is taken and dropped
			}
		}
	}
	workers.Wait()
	r.expired = !r.full && ctx.Err() != nil
	return nil
}

// result is what the call shows, filled file by file in their order.
type result struct {
	out     *tool.Output
	limit   int
	context int

	files   int // that were searched
	hits    int // of them with matches
	matches int
	full    bool // more lines match than are shown
	expired bool // time was up
	skipped [vanished + 1]int
	long    int
}

// add takes the result of the next file, as much as there is room for.
func (r *result) add(f found) {
	if f.state != searched {
		r.skipped[f.state]++
		return
	}
	r.files++
	if f.long {
		r.long++
	}
	if f.matches == 0 {
		return
	}
	room := libctx.MaxToolResult - tool.Reserve - len("--\n") - r.out.Len()
	f = f.head(room, r.limit-r.matches)
	if f.matches > 0 {
		if r.context > 0 && r.hits > 0 {
			r.out.WriteString("--\n")
		}
		r.out.Write(f.text)
		r.hits++
		r.matches += f.matches
	}
	r.full = f.cut || r.matches == r.limit
}

// notes says what was found and what was not looked at.
func (r *result) notes(s *search, limit time.Duration) {
	switch {
	case r.matches == 0 && !r.full:
		why := ""
		switch w := s.walk; {
		case !w.hidden && w.ignore:
			why = "; hidden and ignored files were left out"
		case !w.hidden:
			why = "; hidden files were left out"
		case w.ignore:
			why = "; ignored files were left out"
		}
		r.out.Notef("no match in %s%s", count(r.files, "file"), why)
	case r.full:
		r.out.Notef("stopped after %s; more may follow: narrow pattern, path or glob", count(r.matches, "matching line"))
	default:
		r.out.Notef("%s in %s", count(r.matches, "matching line"), count(r.hits, "file"))
	}
	var skipped []string
	for state, n := range r.skipped {
		if what := [...]string{binary: "binary", tooBig: "over 32 MiB", unreadable: "unreadable", vanished: ""}[state]; n > 0 && what != "" {
			skipped = append(skipped, fmt.Sprintf("%d %s", n, what))
		}
	}
	if len(skipped) > 0 {
		r.out.Notef("files not searched: %s", strings.Join(skipped, ", "))
	}
	if r.long > 0 {
		r.out.Notef("%s with lines over %d KiB, of which the rest was not searched", count(r.long, "file"), maxLine>>10)
	}
	if s.walk.closed > 0 && !r.full && !r.expired {
		r.out.Notef("%d directories can not be read", s.walk.closed)
	}
	if s.walk.deeper {
		r.out.Notef("nothing below %d levels is searched", libctx.MaxListDepth)
	}
	if r.expired {
		r.out.Notef("time was up after %v: not everything was searched", limit)
	}
	if r.full || r.expired {
		r.out.Truncated()
	}
}

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
