package view

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/paths"
)

// Accepts refuses a new text of one control file that would make an agent which
// can run now one that is refused, with the error Load would give. An agent that
// is refused already may be given any text: it may be one of several repairs. An agent that is not there is
// left to whoever writes the file.
func Accepts(l paths.Layout, name libctx.Agent, file string, text []byte) error {
	c, err := loadControls(l, name)
	if err != nil {
		return nil
	}
	if _, err := c.agent(l, name); err != nil {
		return nil
	}
	c.text[file] = text
	if _, err := c.agent(l, name); err != nil {
		return refused(name, err)
	}
	return nil
}
