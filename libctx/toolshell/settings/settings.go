// Package settings is the file of settings of the tool shell, tool/tsh.d/config.
// It is apart from package control so that ctxtool, which starts for every call,
// links nothing more than this.
package settings

import (
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx/linefile"
)

// File is the name of the tool shell's settings, in the control
// directory of the tool tsh.
const File = "config"

// Config is the settings of the tool shell.
type Config struct {
	// MaxLoadedTools is how many tools a session keeps loaded, pinned ones not
	// counted.
	MaxLoadedTools int
	// CacheCapacity and WindowPercent tune a cache of paths. This version looks
	// up afresh for every call and has none; they are checked and kept.
	CacheCapacity int // entries
	WindowPercent int // of CacheCapacity
}

// Default is the settings without the file.
func Default() Config {
	return Config{MaxLoadedTools: 64, CacheCapacity: 32, WindowPercent: 1}
}

// tshKeys are the keys of the file in the order in which they are written.
var tshKeys = []struct {
	name string
	max  int // least is 1
	of   func(*Config) *int
}{
	{"max_loaded_tools", 1024, func(c *Config) *int { return &c.MaxLoadedTools }},
	{"cache_capacity", 1024, func(c *Config) *int { return &c.CacheCapacity }},
	{"window_percent", 100, func(c *Config) *int { return &c.WindowPercent }},
}

// Parse reads the settings of the tool shell: KEY=VALUE lines, blank
// lines, and lines that begin with #. A key that is not there has its default. A
// person edits this file, so its last LF may be missing.
func Parse(text []byte) (Config, error) {
	if n := len(text); n > 0 && text[n-1] != '\n' {
		text = append(slices.Clone(text), '\n')
	}
	c := Default()
	lines, err := linefile.Split(text)
	if err != nil {
		return Default(), linefile.In(File, err)
	}
	seen := map[string]bool{}
	for i, l := range lines {
		if l == "" || l[0] == '#' {
			continue
		}
		if err := c.set(l, seen); err != nil {
			return Default(), linefile.In(File, linefile.At(i+1, l, err))
		}
	}
	return c, nil
}

// set takes one KEY=VALUE line.
func (c *Config) set(line string, seen map[string]bool) error {
	key, value, ok := strings.Cut(line, "=")
	if !ok {
		return linefile.Refuse(0, line, "is neither KEY=VALUE nor a # line")
	}
	for _, k := range tshKeys {
		if k.name != key {
			continue
		}
		if seen[key] {
			return linefile.Refuse(0, line, "sets %s again", key)
		}
		seen[key] = true
		n, err := strconv.ParseUint(value, 10, 16)
		if err != nil || strconv.FormatUint(n, 10) != value || n < 1 || int(n) > k.max {
			return linefile.Refuse(0, line, "is not a number from 1 to %d", k.max)
		}
		*k.of(c) = int(n)
		return nil
	}
	names := make([]string, len(tshKeys))
	for i, k := range tshKeys {
		names[i] = k.name
	}
	return linefile.Refuse(0, key, "is none of %s", strings.Join(names, " "))
}

// Change gives a key of the settings' text another value: in the line it has, else
// in a new one at the end. Everything else stays. Errors are those of
// Parse about the new text.
func Change(text []byte, key string, value int) ([]byte, error) {
	var b strings.Builder
	line, set := key+"="+strconv.Itoa(value)+"\n", false
	for l := range strings.Lines(string(text)) {
		if strings.HasPrefix(l, key+"=") {
			l, set = line, true
		}
		b.WriteString(strings.TrimSuffix(l, "\n") + "\n")
	}
	if !set {
		b.WriteString(line)
	}
	changed := []byte(b.String())
	if _, err := Parse(changed); err != nil {
		return nil, err
	}
	return changed, nil
}

// Text is the settings as a file, every key on a line.
func (c Config) Text() []byte {
	var b strings.Builder
	for _, k := range tshKeys {
		b.WriteString(k.name + "=" + strconv.Itoa(*k.of(&c)) + "\n")
	}
	return []byte(b.String())
}
