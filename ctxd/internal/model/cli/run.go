package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/ctxd/internal/model/drivers"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// run does one request in this process.
func run(ctx context.Context, o options, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	p, err := prepare(o, "warn", stderr)
	if err != nil {
		return err
	}
	g, isJSON, err := request(args[0], args[1:], stdin)
	if err != nil {
		return err
	}
	s := &model.Service{Layout: p.layout, Registry: drivers.All()}
	show := &printer{stdout: stdout, stderr: stderr}
	out := show.text
	if isJSON || o.raw {
		out = show.raw
	}
	if err := s.Answer(ctx, g, out); err != nil {
		return err
	}
	if show.failure != nil {
		return show.failure
	}
	return nil
}

// request is what the words and standard input ask of a model.
func request(name string, words []string, stdin io.Reader) (g *modelwire.Generate, isJSON bool, err error) {
	id, err := libctx.ParseModel(name)
	if err != nil {
		return nil, false, err
	}
	g = &modelwire.Generate{}
	input := strings.Join(words, " ")
	if len(words) == 0 || len(words) == 1 && words[0] == "-" {
		text, err := io.ReadAll(io.LimitReader(stdin, libctx.MaxModelFrame+1))
		if err != nil {
			return nil, false, errdefs.New(errdefs.KindOf(err), "standard input: %w", err)
		}
		if len(text) > libctx.MaxModelFrame {
			return nil, false, errdefs.New(errdefs.TooBig, "standard input is longer than %d bytes", libctx.MaxModelFrame)
		}
		input = wire.Clean(text)
		if isJSON = bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")); isJSON {
			if g, err = decode(text); err != nil {
				return nil, false, err
			}
		}
	}
	if g.Model != "" && g.Model != id {
		return nil, false, errdefs.New(errdefs.Invalid, "the request names the model %s, not %s", g.Model, id)
	}
	g.Model = id
	if !isJSON {
		g.Version = modelwire.Version
		g.Messages = []modelwire.Message{{Role: "user", Content: []wire.Part{wire.Text(input)}}}
	}
	_, err = modelwire.MarshalRequest(g)
	return g, isJSON, err
}

// decode reads a request that may leave out the operation, the version and the
// model.
func decode(text []byte) (*modelwire.Generate, error) {
	var r struct {
		Op                 string `json:"op"`
		modelwire.Generate `json:",embed"`
	}
	if err := wire.Object(text, &r, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if r.Op != "" && r.Op != "generate" {
		return nil, errdefs.New(errdefs.Invalid, "operation %.80q: only generate is run", r.Op)
	}
	if r.Version == 0 {
		r.Version = modelwire.Version
	}
	return &r.Generate, nil
}

// printer shows an answer.
type printer struct {
	stdout, stderr io.Writer
	inert          inert.Inert
	open           bool // the last line of text has no end yet
	failure        *modelwire.Failure
}

// raw prints the frames.
func (p *printer) raw(f modelwire.Frame, line []byte) error {
	p.note(f)
	_, err := p.stdout.Write(inert.JSON(line))
	return err
}

// text prints the text as it comes, calls and what was wrong on standard error.
func (p *printer) text(f modelwire.Frame, _ []byte) error {
	p.note(f)
	var shown []byte
	switch f := f.(type) {
	case *modelwire.Delta:
		shown = p.inert.Append(nil, []byte(f.Text))
	case *modelwire.MessageFrame:
		shown = p.inert.Flush(nil)
		if p.open || len(shown) > 0 {
			shown = append(shown, '\n')
		}
		for _, c := range f.Content {
			if c.Type == "tool_call" {
				fmt.Fprintf(p.stderr, "call %s %s\n", inert.Line(string(c.Name)), inert.JSON(c.Arguments))
			}
		}
	}
	if len(shown) == 0 {
		return nil
	}
	p.open = shown[len(shown)-1] != '\n'
	_, err := p.stdout.Write(shown)
	return err
}

func (p *printer) note(f modelwire.Frame) {
	if e, ok := f.(*modelwire.Error); ok {
		p.failure = &e.Failure
	}
}
