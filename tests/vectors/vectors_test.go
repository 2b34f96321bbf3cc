// Package vectors holds the decoders of the suite to the files beside it.
package vectors

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/envelope"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

const run = "01KB9QZ3M8T5V2N7X4C6D1E0FG"

// decoders maps a folder to what reads its files, and to the kind of refusal.
var decoders = map[string]struct {
	decode func([]byte) error
	kind   errdefs.Kind
}{
	"request":  {func(b []byte) error { _, err := wire.DecodeRequest(b); return err }, errdefs.Invalid},
	"frame":    {func(b []byte) error { _, err := wire.DecodeFrame(b); return err }, errdefs.Invalid},
	"envelope": {func(b []byte) error { _, err := envelope.Decode(b); return err }, errdefs.Invalid},
	"output":   {readOutput, errdefs.Protocol},
}

// readOutput reads the output of a step as the host does.
func readOutput(b []byte) error {
	lines := wire.NewLines(bytes.NewReader(b), libctx.MaxAgentFrame)
	out := envelope.NewOutput(run)
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return errdefs.New(errdefs.Protocol, "output: %w", err)
		}
		if _, err := out.Line(line); err != nil {
			return err
		}
	}
}

func TestVectors(t *testing.T) {
	for folder, d := range decoders {
		for _, verdict := range []string{"good", "bad"} {
			files, err := filepath.Glob(filepath.Join(verdict, folder, "*"))
			if err != nil {
				t.Fatal(err)
			}
			if len(files) < 4 {
				t.Errorf("%s/%s holds %d files", verdict, folder, len(files))
			}
			for _, file := range files {
				t.Run(file, func(t *testing.T) {
					input, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					err = d.decode(input)
					switch {
					case verdict == "good" && err != nil:
						t.Error(err)
					case verdict == "bad" && !errdefs.Is(err, d.kind):
						t.Errorf("%v is not %s", err, d.kind)
					}
				})
			}
		}
	}
}
