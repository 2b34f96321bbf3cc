// Command linecount is a complete executable agent: it lists the workspace,
// reads one file and says how many entries and how many lines it found. Copy it
// to begin an agent of your own; ../linecount.py is the same agent in Python.
//
// The host starts the program once for each step and keeps nothing of it in
// between, so what a later step needs goes into a file in the agent's home.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"cortexfs.org/libctx/sdk"
)

const (
	workspace = "/workspace"
	maxShown  = 200 // entries to list; the listing says how many there are in all
	maxTries  = 7   // files to try: a run has eight calls, one of them lists
)

func main() { os.Exit(sdk.Main(agent)) }

// agent does one step: step 0 asks for the listing, the others look at what the
// call before them brought.
func agent(s *sdk.Step) error {
	switch {
	case s.Number == 0:
		return s.Call("list", "fs.list", map[string]any{"path": workspace, "limit": maxShown})
	case s.Observation.Name == "fs.list":
		return listed(s)
	default:
		return read(s)
	}
}

// listed chooses the files to try from the listing and asks for the first.
func listed(s *sdk.Step) error {
	if s.Observation.Status != "ok" {
		return s.Message("I could not list " + workspace + ": " + firstLine(s.Observation.Content))
	}
	entries, files := parseListing(s.Observation.Content)
	found := workspace + " has " + count(entries, "entry", "entries")
	if s.Observation.Truncated {
		found = workspace + " has at least " + count(entries, "entry", "entries")
	}
	if len(files) == 0 {
		return s.Message(found + " and no regular file.")
	}
	return ask(s, notes{found, files})
}

// read says what it found, or tries the next file if this one was refused.
func read(s *sdk.Step) error {
	n, err := recall(s)
	if err != nil {
		return err
	}
	if s.Observation.Status == "ok" {
		lines, ok := countLines(s.Observation.Content)
		if !ok {
			return s.Message(fmt.Sprintf("%s; I could not tell the lines of %s.", n.found, n.files[0]))
		}
		return s.Message(fmt.Sprintf("%s; %s has %s.", n.found, n.files[0], count(lines, "line", "lines")))
	}
	if len(n.files) == 1 {
		return s.Message(fmt.Sprintf("%s; no file could be read, the last was %s: %s",
			n.found, n.files[0], firstLine(s.Observation.Content)))
	}
	n.files = n.files[1:]
	return ask(s, n)
}

// ask writes the notes and reads the first of their files.
func ask(s *sdk.Step, n notes) error {
	if err := remember(s, n); err != nil {
		return err
	}
	return s.Call("read-"+strconv.Itoa(s.Number), "fs.read", map[string]any{"path": n.files[0], "numbers": true})
}

var notedEntries = regexp.MustCompile(`^\[\d+ of (\d+) entries`)

// parseListing counts the entries of an fs.list result and picks files to try:
// the README first, then regular files in the order of the listing.
func parseListing(text string) (entries int, files []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := notedEntries.FindStringSubmatch(line); m != nil {
			entries, _ = strconv.Atoi(m[1])
			continue
		}
		fields := strings.Split(line, "\t") // kind, mode, size, time, path
		if len(fields) != 5 {
			continue
		}
		entries++
		switch kind, path := fields[0], fields[4]; {
		case kind != "file":
		case path == workspace+"/README.md":
			files = append([]string{path}, files...)
		default:
			files = append(files, path)
		}
	}
	return entries, files[:min(len(files), maxTries)]
}

var (
	numberedLine = regexp.MustCompile(`^ *(\d+)\t`)
	notedLines   = regexp.MustCompile(`^\[lines? \S+ of (\d+)`)
)

// countLines finds the number of lines in an fs.read result with numbers: the
// number of its last line, or the total in the note below a shortened one.
func countLines(text string) (int, bool) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	last := lines[len(lines)-1]
	if last == "[empty file]" {
		return 0, true
	}
	for _, form := range []*regexp.Regexp{numberedLine, notedLines} {
		if m := form.FindStringSubmatch(last); m != nil {
			n, err := strconv.Atoi(m[1])
			return n, err == nil
		}
	}
	return 0, false
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
