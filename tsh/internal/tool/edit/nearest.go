package edit

import (
	"fmt"
	"sort"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool/object"
)

// missing is the error of an old text that is not there. It shows the lines that
// are most like the longest line of it.
func missing(p string, text []byte, old string) error {
	err := errdefs.New(errdefs.Invalid, "%s: old does not occur in it", object.Show(p))
	near := nearest(text, longest(old))
	if len(near) == 0 {
		return err.WithHint("read the file and copy the text exactly")
	}
	var list []string
	for _, n := range near {
		list = append(list, fmt.Sprintf("line %d: %q", n.number, clip(n.text, libctx.MaxSearchLine)))
	}
	return err.WithHint("most similar: %s", strings.Join(list, "; "))
}

// longest is the longest line of a text, without white space around it.
func longest(text string) string {
	best := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) > len(best) {
			best = line
		}
	}
	return best
}

type candidate struct {
	number int
	text   string
	score  float64
}

// nearest are up to three lines that have most of the pairs of bytes of key, and
// at least half of them, best first; of equal ones those as long as key are
// better. White space around lines does not count.
func nearest(text []byte, key string) []candidate {
	const most, least = 3, 0.5
	if len(key) < 2 || len(key) > libctx.MaxLineShown {
		return nil
	}
	pairs := make([]int32, 1<<16)
	for i := range len(key) - 1 {
		pairs[pair(key, i)]++
	}
	var best []candidate
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		trimmed := strings.TrimSpace(line)
		if len(trimmed) < len(key)/2 {
			continue // it can not have half of them
		}
		apart := 1 - float64(min(len(trimmed), len(key)))/float64(max(len(trimmed), len(key)))
		score := float64(common(pairs, trimmed))/float64(len(key)-1) - apart/10
		if trimmed == key {
			score = 2
		}
		if score < least || len(best) == most && score <= best[most-1].score {
			continue
		}
		best = append(best, candidate{number, strings.TrimRight(line, "\r\n"), score})
		sort.SliceStable(best, func(i, j int) bool { return best[i].score > best[j].score })
		best = best[:min(len(best), most)]
	}
	return best
}

func pair(s string, i int) int { return int(s[i])<<8 | int(s[i+1]) }

// common is the number of pairs that line and key have in common. It leaves pairs
// as it was.
func common(pairs []int32, line string) int {
	both := 0
	n := max(len(line)-1, 0)
	for i := range n {
		p := pair(line, i)
		if pairs[p] > 0 {
			both++
		}
		pairs[p]--
	}
	for i := range n {
		pairs[pair(line, i)]++
	}
	return both
}
