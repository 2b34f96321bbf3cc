package debug

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// block is what answers one request.
type block struct {
	name   string
	repeat bool
	items  []*item
}

// item is one line of a script; exactly one of the members is set.
type item struct {
	Block  *string            `json:"block"`
	Repeat bool               `json:"repeat"` // of block: it answers every later request too
	Type   string             `json:"type"`   // a frame, which is the whole line
	Delay  *int64             `json:"delay_ms"`
	Fail   *modelwire.Failure `json:"fail"`
	Expect *expect            `json:"expect"`
	Answer *answer            `json:"answer"`
	Fault  string             `json:"fault"`

	line int
	raw  []byte
}

// answer is a whole answer in short.
type answer struct {
	Text      string `json:"text"`
	Reasoning string `json:"reasoning"`
	Calls     []struct {
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
	} `json:"calls"`
	Stop string `json:"stop"`
}

func reasoning(text string) []wire.Part { return []wire.Part{{Type: "reasoning", Text: text}} }

var faults = []string{"drop", "hang", "kill"}

// parseScript reads a script. Errors name the line and show nothing of it: the
// file could be any.
func parseScript(data []byte) ([]*block, error) {
	var blocks []*block
	n := 0
	for text := range bytes.Lines(data) {
		n++
		text = bytes.TrimSpace(text)
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		it, err := parseItem(text)
		if err != nil {
			return nil, fmt.Errorf("line %d of the script: %w", n, err)
		}
		it.line = n
		switch {
		case it.Block != nil && len(blocks) > 0 && blocks[len(blocks)-1].repeat:
			return nil, fmt.Errorf("line %d of the script: comes after the block that repeats", n)
		case it.Block != nil:
			blocks = append(blocks, &block{name: *it.Block, repeat: it.Repeat})
		case len(blocks) == 0:
			return nil, fmt.Errorf("line %d of the script: comes before the first block", n)
		default:
			b := blocks[len(blocks)-1]
			b.items = append(b.items, it)
		}
	}
	if len(blocks) == 0 {
		return nil, errors.New("the script has no block")
	}
	return blocks, nil
}

func parseItem(text []byte) (*item, error) {
	var head struct {
		Type *string `json:"type"`
	}
	if err := wire.Object(text, &head); err != nil {
		return nil, errors.New("is not a JSON object")
	}
	if head.Type != nil {
		f, err := modelwire.DecodeFrame(text)
		if err != nil {
			return nil, errors.New("is not a frame")
		}
		switch f.(type) {
		case *modelwire.Error, *modelwire.Done, *modelwire.Other, *modelwire.Found, *modelwire.Verdict:
			return nil, errors.New("is a frame that no script sends")
		}
		return &item{Type: *head.Type, raw: text}, nil
	}
	it := new(item)
	if err := wire.Object(text, it, json.RejectUnknownMembers(true)); err != nil {
		return nil, errors.New("is no item of a script")
	}
	set := 0
	for _, there := range []bool{it.Block != nil, it.Delay != nil, it.Fail != nil, it.Expect != nil, it.Answer != nil, it.Fault != ""} {
		if there {
			set++
		}
	}
	switch {
	case set != 1:
		return nil, errors.New("is not exactly one item")
	case it.Block == nil && it.Repeat:
		return nil, errors.New("only a block repeats")
	case it.Block != nil && len(*it.Block) > libctx.MaxName:
		return nil, errors.New("the block's name is too long")
	case it.Delay != nil && (*it.Delay < 0 || *it.Delay > delayBound):
		return nil, fmt.Errorf("the delay is not 0 to %d", delayBound)
	case it.Fault != "" && !slices.Contains(faults, it.Fault):
		return nil, fmt.Errorf("the fault is none of %s", strings.Join(faults, ", "))
	}
	if it.Fail != nil {
		if _, err := modelwire.MarshalFrame(&modelwire.Error{Failure: *it.Fail}); err != nil {
			return nil, errors.New("the failure lacks code, phase or class, or has a wrong one")
		}
	}
	return it, nil
}

// nextBlock is the block of a script whose turn it is. How many were taken is
// kept in a file beside the script, so that it does not matter which process
// answers; whoever removes it starts the script again.
func nextBlock(path string) (*block, error) {
	if !filepath.IsAbs(path) {
		return nil, errors.New("the script's path is not absolute")
	}
	dir, err := atomicfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	name := filepath.Base(path)
	data, err := dir.ReadFile(name, libctx.MaxScript)
	if err != nil {
		return nil, err
	}
	blocks, err := parseScript(data)
	if err != nil {
		return nil, err
	}
	n, err := take(dir, name+".at")
	switch {
	case err != nil:
		return nil, err
	case n < len(blocks):
		return blocks[n], nil
	case blocks[len(blocks)-1].repeat:
		return blocks[len(blocks)-1], nil
	}
	return nil, fmt.Errorf("the script has %d blocks, and this is request %d (remove %s.at to start again)", len(blocks), n+1, path)
}

// take counts one up and returns the count before.
func take(dir *atomicfile.Dir, name string) (int, error) {
	f, _, err := dir.OpenAppend(name, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return 0, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
	// One line a request: nothing is ever rewritten, so nothing is ever torn.
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	n := st.Size() / takenSize
	if st.Size()%takenSize != 0 || n > 1<<30 {
		return 0, errdefs.New(errdefs.Invalid, "%s is damaged; remove it to start the script again", f.Name())
	}
	line := strconv.FormatInt(n+1, 10)
	line = strings.Repeat("0", takenSize-1-len(line)) + line + "\n"
	_, err = f.WriteString(line)
	return int(n), err
}

// takenSize is the length of a line of the file of taken blocks.
const takenSize = 12
