package compose

// String is what the part says so far: a text, or the arguments of a call as the
// model writes them.
func (p *Part) String() string { return p.text.String() }
