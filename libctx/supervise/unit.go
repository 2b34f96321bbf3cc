package supervise

import (
	"path/filepath"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
)

const (
	unitPrefix = "cortexfs-terminal:"
	unitSuffix = ".service"
	// maxUnit is the longest name of a unit that systemd takes, in bytes.
	maxUnit = 255
)

// Unit names the terminal of a session: cortexfs-terminal:AGENT:SESSION.service.
// In a tree that is neither the machine's nor the user's own, a third part tells
// it from the same session there. Parts are escaped as systemd-escape does.
func Unit(l paths.Layout, a libctx.Agent, s libctx.Session) string {
	name := unitPrefix + escape(string(a)) + ":" + escape(string(s))
	if key := treeKey(l); key != "" {
		name += ":" + key
	}
	return name + unitSuffix
}

// treeKey tells trees apart that have their terminals each in a place of its
// own, "" for those in the well-known one.
func treeKey(l paths.Layout) string {
	key := filepath.Base(filepath.Dir(l.Terminals))
	if len(key) == 16 && strings.Trim(key, "0123456789abcdef") == "" {
		return key
	}
	return ""
}

// ParseUnit is the inverse of Unit. Any other name, and that of another tree, is
// errdefs.Invalid.
func ParseUnit(l paths.Layout, unit string) (libctx.Agent, libctx.Session, error) {
	refuse := func() (libctx.Agent, libctx.Session, error) {
		return "", "", errdefs.New(errdefs.Invalid, "unit %.300q is no terminal of this tree", unit)
	}
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(unit, unitPrefix), unitSuffix), ":")
	if len(parts) < 2 {
		return refuse()
	}
	agent, err := libctx.ParseAgent(unescape(parts[0]))
	if err != nil {
		return refuse()
	}
	session, err := libctx.ParseSession(unescape(parts[1]))
	if err != nil || Unit(l, agent, session) != unit {
		return refuse()
	}
	return agent, session, nil
}

// escape writes a part of a unit's name: what is not a letter, a digit, "_", "."
// or ":" becomes \xHH, a "/" becomes "-", and a "." in front is escaped too.
func escape(part string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(part) {
		switch c := part[i]; {
		case c == '/':
			b.WriteByte('-')
		case c == '.' && i > 0, c == '_', c == ':', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			b.WriteByte(c)
		default:
			b.WriteString(`\x`)
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// unescape undoes escape; what escape never writes comes out as something that
// does not escape to the same again.
func unescape(part string) string {
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		c := part[i]
		switch {
		case c == '-':
			c = '/'
		case c == '\\' && i+3 < len(part) && part[i+1] == 'x':
			hi, lo := digit(part[i+2]), digit(part[i+3])
			if hi >= 0 && lo >= 0 {
				c = byte(hi<<4 | lo)
				i += 3
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

func digit(c byte) int { return strings.IndexByte("0123456789abcdef", c) }
