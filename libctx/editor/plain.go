package editor

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// Plain reads lines as they are: from a pipe, or from a terminal on which
// nothing can be moved. It reads ahead of Next by one buffer and no line.
type Plain struct {
	out   io.Writer // takes the prompt
	in    *bufio.Reader
	lines chan Line
	next  chan struct{}
	stop  chan struct{}

	mu     sync.Mutex
	prompt string // "": none
}

// NewPlain reads lines from in. The goroutine that does ends with Close, or, if
// it is in the middle of a read, with that.
func NewPlain(in io.Reader, out io.Writer, prompt string) *Plain {
	p := &Plain{
		out: out, prompt: prompt, in: bufio.NewReaderSize(in, 64<<10),
		lines: make(chan Line), next: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	go p.read()
	return p
}

// Lines delivers what is entered, one line for each Next.
func (p *Plain) Lines() <-chan Line { return p.lines }

// Next asks for a line.
func (p *Plain) Next() {
	select {
	case p.next <- struct{}{}:
	default: // it has been asked for
	}
}

// Prompt changes the prompt, if there is one, from the next line on.
func (p *Plain) Prompt(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prompt != "" {
		p.prompt = text
	}
}

// Close ends the reading.
func (p *Plain) Close() { close(p.stop) }

func (p *Plain) read() {
	for {
		select {
		case <-p.next:
		case <-p.stop:
			return
		}
		p.mu.Lock()
		prompt := p.prompt
		p.mu.Unlock()
		_, _ = io.WriteString(p.out, prompt) // of a terminal that is gone the read tells
		text, err := p.logical()
		select {
		case p.lines <- Line{Text: text, Err: err}:
		case <-p.stop:
			return
		}
	}
}

// logical reads a line, and the next ones as long as they end in a backslash.
func (p *Plain) logical() (string, error) {
	var b strings.Builder
	for {
		line, err := p.in.ReadSlice('\n')
		b.Write(line)
		switch {
		case b.Len() > libctx.MaxFrame:
			return "", errdefs.New(errdefs.TooBig, "a line of the input is longer than %d bytes", libctx.MaxFrame)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && b.Len() == 0:
			return "", io.EOF
		case err != nil && err != io.EOF:
			return "", errdefs.New(errdefs.IO, "standard input: %w", err)
		}
		text := strings.TrimSuffix(strings.TrimSuffix(b.String(), "\n"), "\r")
		if err == nil && strings.HasSuffix(text, "\\") {
			b.Reset()
			b.WriteString(strings.TrimSuffix(text, "\\") + "\n")
			continue
		}
		switch {
		case !utf8.ValidString(text):
			return "", errdefs.New(errdefs.Invalid, "standard input: is not UTF-8 text")
		case strings.ContainsRune(text, 0):
			return "", errdefs.New(errdefs.Invalid, "standard input: holds a NUL character")
		}
		return text, nil
	}
}
