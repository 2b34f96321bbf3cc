// Package manual makes manual pages. The text of a page is a Markdown file in
// docs/man; lines in it such as
//
//	<!-- commands ctx agent -->
//
// stand for what the programs say of themselves, or for a page of the reference,
// so that nothing is written twice:
//
//	synopsis COMMAND   how the command, or each command of it, is called
//	long COMMAND       what there is to know of it
//	commands COMMAND   its commands, with their flags
//	flags COMMAND      its flags
//	examples COMMAND   its examples, and those of its commands
//	page FILE          a page of docs/reference, without its title
package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"cortexfs.org/packaging/internal/program"
	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// Page is a manual page that can be made.
type Page struct {
	Name    string // "ctx-agent"
	Section string // "1"
	Short   string // the line of NAME
	body    string
}

// File is the name of its file.
func (p *Page) File() string { return p.Name + "." + p.Section }

// Book is all pages of a tree of sources.
type Book struct {
	Pages    []*Page
	top      string
	programs []*program.Command
	sources  map[string]*Page // by the page of the reference that one is made from
	used     map[*program.Command]bool
}

var (
	title     = regexp.MustCompile(`^# ([a-z.-]+)\(([158])\) - (.+)\n`)
	directive = regexp.MustCompile(`(?m)^<!-- ([a-z]+) (\S.*) -->$`)
)

// Read reads docs/man below top, the top directory of the sources.
func Read(top string, programs []*program.Command) (*Book, error) {
	b := &Book{top: top, programs: programs, sources: map[string]*Page{}, used: map[*program.Command]bool{}}
	files, err := filepath.Glob(filepath.Join(top, "docs/man/*.md"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m := title.FindSubmatch(text)
		if m == nil || filepath.Base(file) != string(m[1])+"."+string(m[2])+".md" {
			return nil, fmt.Errorf("%s does not begin with \"# NAME(SECTION) - TEXT\" of its own name", file)
		}
		p := &Page{Name: string(m[1]), Section: string(m[2]), Short: string(m[3]), body: string(text[len(m[0]):])}
		b.Pages = append(b.Pages, p)
		for _, d := range directive.FindAllStringSubmatch(p.body, -1) {
			if d[1] == "page" {
				b.sources[d[2]] = p
			}
		}
	}
	if len(b.Pages) == 0 {
		return nil, fmt.Errorf("%s: there is no docs/man", top)
	}
	return b, nil
}

// Render makes the manual page p, as of a version and a day.
func (b *Book) Render(p *Page, version, day string) ([]byte, error) {
	var failed error
	body := directive.ReplaceAllStringFunc(p.body, func(line string) string {
		m := directive.FindStringSubmatch(line)
		text, err := b.expand(m[1], m[2])
		if err != nil && failed == nil {
			failed = fmt.Errorf("docs/man/%s.md: %w", p.File(), err)
		}
		return text
	})
	if failed != nil {
		return nil, failed
	}
	roff := md2man.Render([]byte("# NAME\n" + p.Name + " - " + p.Short + "\n\n" + capital(untable(b.link(body)))))
	// The first head is taken for the title, which is more than that word.
	name := []byte(".TH NAME\n")
	if !bytes.Contains(roff, name) {
		return nil, fmt.Errorf("docs/man/%s.md: made no NAME", p.File())
	}
	// Lines are not stretched: names of files are long and can not be divided.
	return append([]byte(fmt.Sprintf(".TH \"%s\" \"%s\" \"%s\" \"CortexFS %s\" \"CortexFS\"\n.ad l\n",
		strings.ToUpper(p.Name), p.Section, day, version)), bytes.Replace(roff, name, []byte(".SH NAME\n"), 1)...), nil
}

// Unused are the commands that no page explains.
func (b *Book) Unused() []string {
	var words []string
	var walk func(*program.Command)
	walk = func(c *program.Command) {
		if !b.used[c] {
			words = append(words, c.Words)
		}
		for _, s := range c.Commands {
			walk(s)
		}
	}
	for _, p := range b.programs {
		walk(p)
	}
	return words
}
