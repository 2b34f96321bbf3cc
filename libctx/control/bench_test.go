package control

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func BenchmarkParseSchema(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseSchema([]byte(fsRead)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	s, err := ParseSchema([]byte(fsRead))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(jsontext.Value(`{"path":"README.md","n":7}`)); err != nil {
			b.Fatal(err)
		}
	}
}

// The worst that arguments of the largest size can do: every value is wrong.
func BenchmarkValidateAllWrong(b *testing.B) {
	s, err := ParseSchema([]byte("{\"items\":{\"type\":\"string\",\"minLength\":3}}\n"))
	if err != nil {
		b.Fatal(err)
	}
	args := jsontext.Value("[" + strings.Repeat("1,", 60_000) + "1]")
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(args); err == nil {
			b.Fatal("accepted")
		}
	}
}
