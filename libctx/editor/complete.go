package editor

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/reeflective/readline"
	"github.com/rivo/uniseg"
)

// maxOffered bounds the names that are offered for one word.
const maxOffered = 200

// complete offers what the word before the cursor could become.
func (e *Editor) complete(line []rune, cursor int) readline.Completions {
	before := string(line[:min(cursor, len(line))])
	word := before[strings.LastIndexAny(before, " \t\n")+1:]
	c := readline.CompleteValues(e.candidates(before, word)...)
	c.PREFIX = word
	return c.NoSpace('/')
}

// candidates are the words there are. Names of files that a terminal could not
// show as they are, that mean something in a line, and hidden ones nobody asked
// for, are left out.
func (e *Editor) candidates(before, word string) []string {
	var found []string
	if e.opts.Words != nil {
		words, files := e.opts.Words(strings.TrimSuffix(before, word), word)
		for _, w := range words {
			if strings.HasPrefix(w, word) {
				found = append(found, w)
			}
		}
		if len(found) > 0 || !files {
			return found
		}
	}
	dir, name := filepath.Split(word)
	at := dir
	if !filepath.IsAbs(at) {
		at = filepath.Join(e.opts.Dir, at)
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		n := entry.Name()
		if !strings.HasPrefix(n, name) || name == "" && strings.HasPrefix(n, ".") || clean(n) != n ||
			strings.ContainsAny(n, " \t\n"+e.opts.Special) || uniseg.StringWidth(n) == 0 {
			continue
		}
		if entry.IsDir() {
			n += "/"
		}
		if found = append(found, dir+n); len(found) == maxOffered {
			break
		}
	}
	return found
}
