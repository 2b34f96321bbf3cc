package checker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// object is a JSON object as it stands in a file: numbers are not rounded.
type object map[string]any

func (o object) str(name string) string {
	s, _ := o[name].(string)
	return s
}

// int is a whole number, -1 if the member is missing or something else.
func (o object) int(name string) int64 {
	n, ok := o[name].(json.Number)
	if !ok {
		return -1
	}
	i, err := n.Int64()
	if err != nil {
		return -1
	}
	return i
}

func (o object) object(name string) object {
	m, _ := o[name].(map[string]any)
	return m
}

// objects are the elements of a member that is an array of objects.
func (o object) objects(name string) []object {
	list, _ := o[name].([]any)
	var all []object
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// parse reads a line strictly: UTF-8, one object, no member twice.
func parse(line []byte) (object, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	v, err := value(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("holds more than one value")
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("is not an object")
	}
	return m, nil
}

// value reads one value; unlike Decode it minds members that come twice.
func value(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		m := map[string]any{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			key, _ := name.(string)
			if _, twice := m[key]; twice {
				return nil, fmt.Errorf("has member %q twice", key)
			}
			if m[key], err = value(d); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return m, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			e, err := value(d)
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		}
		_, err = d.Token()
		return list, err
	}
	return t, nil
}
