package program

// Suite asks every program of the suite, in the folder dir.
func Suite(dir string) ([]*Command, error) {
	var all []*Command
	for _, name := range []string{"ctx", "ctxd", "ctxmodel", "ctxterm"} {
		c, err := Load(dir, name)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	for _, name := range []string{"tsh", "ctxtool"} {
		c, err := LoadShell(dir, name)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
