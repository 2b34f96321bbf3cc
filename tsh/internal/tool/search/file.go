package search

import (
	"bytes"
	"context"
	"strconv"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/tsh/internal/tool/object"
	"golang.org/x/sys/unix"
)

// found is what one file has to show.
type found struct {
	text    []byte // lines of the result
	ends    []int  // where in it each of the matching lines ends
	matches int    // the number of those
	cut     bool   // more lines match
	state   state
	long    bool // a line was longer than what of it is searched
}

// head is as much of it as has room in so many bytes and matching lines.
func (f found) head(room, matches int) found {
	if len(f.text) <= room && f.matches <= matches {
		return f
	}
	n := min(f.matches, matches)
	for n > 0 && f.ends[n-1] > room {
		n--
	}
	end := 0
	if n > 0 {
		end = f.ends[n-1]
	}
	f.text, f.ends, f.matches, f.cut = f.text[:end], f.ends[:n], n, true
	return f
}

// state is why a file was not searched.
type state int

const (
	searched state = iota
	binary
	tooBig
	unreadable
	vanished
)

// reader searches files, one after the other, in memory of its own.
type reader struct {
	*matcher
	ctx     context.Context
	context int
	limit   int
	buf     []byte
	low     []byte
}

// search reads the file name of an open directory and looks for matching lines.
// Label is its path as it is shown.
func (r *reader) search(dir int, name, label string) found {
	fd, err := object.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_NOFOLLOW)
	switch err {
	case nil:
	case unix.ENOENT:
		return found{state: vanished}
	default:
		return found{state: unreadable}
	}
	defer unix.Close(fd)
	return r.open(fd, label)
}

// open searches an open file.
func (r *reader) open(fd int, label string) found {
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil || object.Kind(st.Mode) != "file":
		return found{state: unreadable}
	case st.Size > libctx.MaxFileRead:
		return found{state: tooBig}
	}
	if int(st.Size) > len(r.buf) {
		r.buf = make([]byte, max(int(st.Size), 64<<10))
	}
	text := r.buf[:st.Size] // what it grows by meanwhile is not looked at
	n := 0
	for n < len(text) {
		k, err := unix.Read(fd, text[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return found{state: unreadable}
		}
		if k == 0 {
			break
		}
		n += k
	}
	if text = text[:n]; bytes.IndexByte(text, 0) >= 0 {
		return found{state: binary}
	}
	return r.lines(r.endings(text), label)
}

// lines looks for matching lines in a text.
func (r *reader) lines(text []byte, label string) found {
	c := cursor{matcher: r.matcher, text: text, low: text}
	if r.fold {
		r.low = lower(r.low[:0], text)
		c.low = r.low
	}
	var f found
	p := page{text: text, label: label, around: r.context, line: 1}
	from := 0
	stop := func() bool { return r.ctx.Err() != nil }
	for {
		begin, end, at, ok := c.find(from, stop)
		if !ok {
			break
		}
		if f.matches == r.limit || len(p.out) > libctx.MaxToolResult {
			f.cut = true
			break
		}
		p.match(begin, at)
		f.ends = append(f.ends, len(p.out))
		f.matches++
		from = end + 1
	}
	if f.matches > 0 {
		p.after()
	}
	f.text, f.long = p.out, c.long
	return f
}

// page writes matching lines and the lines around them.
type page struct {
	text   []byte
	label  string
	around int

	out  []byte
	line int // number of the line at next
	next int // where the first line begins that is not written yet
	left int // lines that are still to be written behind the last match
}

// match writes the line that begins there, in which the match begins at at.
func (p *page) match(begin, at int) {
	p.upTo(begin)
	start := begin
	for n := 0; n < p.around && start > p.next; n++ {
		start = bytes.LastIndexByte(p.text[p.next:start-1], '\n') + 1 + p.next
	}
	if p.around > 0 && len(p.out) > 0 && start > p.next {
		p.out = append(p.out, "--\n"...)
	}
	p.line += bytes.Count(p.text[p.next:start], lf)
	for p.next = start; p.next < begin; {
		p.write('-', p.next)
	}
	p.write(':', at)
	p.left = p.around
}

var lf = []byte("\n")

// upTo writes what is still due behind the last match, up to a place.
func (p *page) upTo(place int) {
	for ; p.left > 0 && p.next < place; p.left-- {
		p.write('-', p.next)
	}
}

// after writes what is due behind the last match of all.
func (p *page) after() { p.upTo(len(p.text)) }

// write writes the line at next, around the byte at.
func (p *page) write(mark byte, at int) {
	end := len(p.text)
	if n := bytes.IndexByte(p.text[p.next:], '\n'); n >= 0 {
		end = p.next + n
	}
	line := bytes.TrimSuffix(p.text[p.next:end], []byte("\r"))
	p.out = append(append(p.out, p.label...), mark)
	p.out = append(strconv.AppendInt(p.out, int64(p.line), 10), mark, ' ')
	p.out = append(p.out, clip(line, min(at-p.next, len(line)))...)
	p.out = append(p.out, '\n')
	p.next = min(end+1, len(p.text))
	p.line++
}

// clip is a line as valid text of at most libctx.MaxSearchLine characters, with
// the byte at in it, and marks where something is left out.
func clip(line []byte, at int) string {
	const most = libctx.MaxSearchLine
	if len(line) <= most {
		return wire.Clean(line)
	}
	head := 0
	if at > most*2/3 {
		head = at - most/3
		for head < len(line) && !utf8.RuneStart(line[head]) {
			head++
		}
	}
	tail := head
	for n := 0; n < most && tail < len(line); n++ {
		_, size := utf8.DecodeRune(line[tail:])
		tail += size
	}
	text := wire.Clean(line[head:tail])
	if head > 0 {
		text = "…" + text
	}
	if tail < len(line) {
		text += "…"
	}
	return text
}
