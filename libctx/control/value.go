package control

import (
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/linefile"
)

// value reads a file of one value.
func value[T any](file string, text []byte, parse func(string) (T, error)) (T, error) {
	var zero T
	s, err := linefile.One(text)
	if err != nil {
		return zero, linefile.In(file, err)
	}
	v, err := parse(s)
	if err != nil {
		return zero, linefile.In(file, linefile.At(1, s, err))
	}
	return v, nil
}

// list reads a file of one value a line, none of them twice.
func list[T comparable](file string, text []byte, parse func(string) (T, error)) ([]T, error) {
	lines, err := linefile.Split(text)
	if err != nil {
		return nil, linefile.In(file, err)
	}
	if len(lines) > libctx.MaxListLines {
		return nil, linefile.In(file, linefile.Refuse(libctx.MaxListLines+1, "", "is one line too many: a list has at most %d", libctx.MaxListLines))
	}
	var all []T
	seen := make(map[T]bool, len(lines))
	for i, s := range lines {
		if s == "" {
			return nil, linefile.In(file, linefile.Refuse(i+1, "", "is a blank line"))
		}
		v, err := parse(s)
		if err != nil {
			return nil, linefile.In(file, linefile.At(i+1, s, err))
		}
		if seen[v] {
			return nil, linefile.In(file, linefile.Refuse(i+1, s, "is listed twice"))
		}
		seen[v] = true
		all = append(all, v)
	}
	return all, nil
}

// oneOf is the parser of a closed list of words.
func oneOf(words ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		if slices.Contains(words, s) {
			return s, nil
		}
		last := len(words) - 1
		if last == 0 {
			return "", linefile.Refuse(0, s, "is not %s, the only value", words[0])
		}
		return "", linefile.Refuse(0, s, "is not %s or %s", strings.Join(words[:last], ", "), words[last])
	}
}
