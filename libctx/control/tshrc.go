package control

import (
	"strings"

	"cortexfs.org/libctx/linefile"
)

// ParseTshrc reads the startup file .tshrc of tsh: one CTX_PATH= line with a
// colon list of absolute directories, blank lines, and lines that begin with #.
// It is data: nothing in it is expanded or executed. Without a CTX_PATH line
// set is false. A person edits this file, so its last LF may be missing.
func ParseTshrc(text []byte) (path []string, set bool, err error) {
	if n := len(text); n > 0 && text[n-1] != '\n' {
		text = append(append([]byte(nil), text...), '\n')
	}
	lines, err := linefile.Split(text)
	if err != nil {
		return nil, false, linefile.In(".tshrc", err)
	}
	for i, l := range lines {
		if l == "" || l[0] == '#' {
			continue
		}
		value, ok := strings.CutPrefix(l, "CTX_PATH=")
		switch {
		case !ok:
			err = linefile.Refuse(i+1, l, "is neither CTX_PATH=DIR:DIR… nor a # line")
		case set:
			err = linefile.Refuse(i+1, l, "sets CTX_PATH again")
		default:
			if path, err = splitPath(value); err != nil {
				err = linefile.At(i+1, value, err)
			}
		}
		if err != nil {
			return nil, false, linefile.In(".tshrc", err)
		}
		set = true
	}
	return path, set, nil
}
