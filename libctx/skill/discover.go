package skill

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/discover"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/paths"
)

// fileName is what the file of a skill is called.
const fileName = "SKILL.md"

// Directories of skills: of the machine, and of homes and projects.
var (
	globalDirs = []string{path.Base(paths.InSkills)}
	dirs       = paths.SkillDirs()
)

// Discover reads the front matter of the skills there are, in order of
// precedence: the machine's, the agent's own, then those of cwd and of the
// directories above it up to the top of the workspace. It never fails: what can
// not be read is a warning.
//
// A directory that holds a SKILL.md is a skill and is not searched further;
// directories whose name begins with a dot are passed over.
func Discover(p discover.Places) ([]Skill, []discover.Warning) {
	s := search{files: libctx.MaxSkillFiles, entries: libctx.MaxSkillEntries}
	warnings := s.in(p)
	return s.found, warnings
}

// search is one walk through all places.
type search struct {
	files   int // that may still be read
	entries int // of directories that may still be looked at
	warn    func(string, error)
	found   []Skill
	full    bool
}

func (s *search) in(p discover.Places) []discover.Warning {
	return p.Search(func(places []discover.Place, warn func(string, error)) {
		s.warn = warn
		for i := range places {
			if !places[i].Project {
				s.place(places[i])
			}
		}
		for i := len(places) - 1; i >= 0; i-- {
			if places[i].Project {
				s.place(places[i])
			}
		}
	})
}

func (s *search) place(p discover.Place) {
	below := dirs
	if p.Path == discover.Global {
		below = globalDirs
	}
	for _, rel := range below {
		if d, err := p.Sub(rel); err != nil {
			s.warn(path.Join(p.Path, rel), err)
		} else {
			s.dir(d, 0)
			d.Close()
		}
	}
}

// dir searches a directory, depth levels below a directory of skills.
func (s *search) dir(d discover.Place, depth int) {
	if depth > 0 {
		err := s.file(d)
		if err == nil {
			return
		}
		if !errors.Is(err, fs.ErrNotExist) {
			s.warn(path.Join(d.Path, fileName), err)
			return
		}
	}
	if depth == libctx.MaxSkillDepth {
		return
	}
	names, more, err := d.Names(s.entries)
	if err != nil {
		s.warn(d.Path, err)
		return
	}
	if s.entries -= len(names); more {
		s.stop(d.Path, errors.New("the search for skills ends here: too many directory entries"))
	}
	for _, name := range names {
		if s.files == 0 {
			s.stop(d.Path, errors.New("the search for skills ends here: too many of them"))
			return
		}
		if name[0] == '.' {
			continue
		}
		sub, err := d.Sub(name)
		if err != nil {
			s.warn(path.Join(d.Path, name), err)
			continue
		}
		s.dir(sub, depth+1)
		sub.Close()
	}
}

// stop warns once that not everything was looked at.
func (s *search) stop(where string, err error) {
	if !s.full {
		s.full = true
		s.warn(where, err)
	}
}

// file reads the SKILL.md of a directory.
func (s *search) file(d discover.Place) error {
	if s.files == 0 {
		return fs.ErrNotExist
	}
	h, err := d.Head(fileName, libctx.MaxSkillFront)
	if err != nil {
		return err
	}
	s.files--
	// What is listed must be possible to open, by a path in JSON.
	where := path.Join(d.Path, fileName)
	if !utf8.ValidString(where) || inert.Line(where) != where {
		return errors.New("its path has characters that can not be shown")
	}
	m, err := parseFront(h.Bytes)
	if err != nil {
		return err
	}
	if m.name == "" {
		m.name = oneLine(path.Base(d.Path))
	}
	s.found = append(s.found, Skill{
		Name:        shorten(m.name, libctx.MaxName),
		Description: shorten(m.description, libctx.MaxSkillAbout),
		Path:        where,
	})
	return nil
}

// oneLine makes a text one line without anything that acts or hides.
func oneLine(s string) string { return inert.Line(strings.Join(strings.Fields(s), " ")) }
