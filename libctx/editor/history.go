package editor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"github.com/go-json-experiment/json/jsontext"
)

// history is what a person entered, the oldest first, in a file of theirs alone:
// one JSON string a line. It is kept as good as it goes: nothing fails because its
// history does.
type history struct {
	file  string // "": only in memory
	lines []string
	long  func(string) string // the whole of a line with marks
}

// openHistory reads the file; of one that is longer than libctx.MaxHistory
// lines, the last ones, and writes it anew.
func openHistory(file string) *history {
	h := &history{file: file}
	if file == "" {
		return h
	}
	dir, err := atomicfile.OpenDir(filepath.Dir(file))
	if err != nil {
		return h
	}
	defer dir.Close()
	text, err := dir.ReadFile(filepath.Base(file), libctx.MaxHistoryFile)
	if err != nil {
		return h
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		entry, err := jsontext.AppendUnquote(nil, bytes.TrimSuffix(line, []byte("\n")))
		if err == nil && len(entry) > 0 {
			h.lines = append(h.lines, clean(string(entry)))
		}
	}
	h.lines = h.lines[max(0, len(h.lines)-libctx.MaxHistory):]
	if n > 2*libctx.MaxHistory {
		var all []byte
		for _, line := range h.lines {
			all = append(all, quoted(line)...)
		}
		_ = dir.Replace(filepath.Base(file), all, 0o600) // the old one does too
	}
	return h
}

// Write adds a line, unless it is that before it again or too long to keep.
func (h *history) Write(line string) (int, error) {
	if h.long != nil {
		line = h.long(line)
	}
	line = strings.TrimRight(line, "\n")
	if strings.TrimSpace(line) == "" || len(line) > libctx.MaxHistoryLine || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return len(h.lines), nil
	}
	h.lines = append(h.lines, line)
	if h.file != "" {
		h.append(line)
	}
	return len(h.lines), nil
}

// GetLine is line n, the oldest is 0; outside there is "".
func (h *history) GetLine(n int) (string, error) {
	if n < 0 || n >= len(h.lines) {
		return "", nil
	}
	return h.lines[n], nil
}

// Len is the number of lines.
func (h *history) Len() int { return len(h.lines) }

// Dump is all lines.
func (h *history) Dump() any { return h.lines }

func quoted(line string) []byte {
	b, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(line, "\uFFFD"))
	if err != nil {
		return nil
	}
	return append(b, '\n')
}

// append writes one line in one piece, so that editors beside one another do not
// mix theirs.
func (h *history) append(line string) {
	if os.MkdirAll(filepath.Dir(h.file), 0o700) != nil {
		return
	}
	dir, err := atomicfile.OpenDir(filepath.Dir(h.file))
	if err != nil {
		return
	}
	defer dir.Close()
	f, _, err := dir.OpenAppend(filepath.Base(h.file), 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(quoted(line))
}
