package attach

import "regexp"

// colours notes whether a program has set colours of the person's terminal. They
// are set back only then: the person may have colours of their own.
type colours struct {
	set  bool
	tail []byte // of what was drawn last, so that a sequence may be cut anywhere
}

// setting is how a sequence about the palette, or about the colours of text,
// ground and pointer, begins.
var setting = regexp.MustCompile("(?:\x1b\\]|\\x{9d})0*(?:[45]|1[0-9]|21|10[45]|11[0-9])[;\a\x1b]")

// maxSetting is the longest beginning that is looked for, in bytes.
const maxSetting = 16

// see looks at what is drawn.
func (c *colours) see(b []byte) {
	if c.set {
		return
	}
	c.set = setting.Match(append(c.tail, b[:min(len(b), maxSetting)]...)) || setting.Match(b)
	c.tail = append(c.tail, b[max(0, len(b)-maxSetting):]...)
	c.tail = append(c.tail[:0], c.tail[max(0, len(c.tail)-maxSetting):]...)
}

// back is what sets them back.
func (c *colours) back() string {
	if !c.set {
		return ""
	}
	c.set = false
	return "\x1b]104\x1b\\\x1b]105\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\"
}
