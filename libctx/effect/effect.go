// Package effect is what one tool call is about to do, written down so that a
// permission for it is one for exactly this and nothing else: the intent has one
// encoding, and its digest is what grants are bound to
// (docs/reference/admission.md). The arguments are in it byte for byte, as they
// came; two spellings of one JSON value are two intents.
package effect

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"github.com/go-json-experiment/json/jsontext"
)

// header is the first line of every encoding; another layout gets another one.
const header = "cortexfs effect intent 1\n"

// Intent is one call that admission has judged. Every member counts; each is bounded
// where it comes from, the arguments by libctx.MaxCallArguments.
type Intent struct {
	Principal libctx.Subject // whose policy lines allow it
	UID       uint32         // as whom it runs
	Session   libctx.Session
	Run       libctx.Run
	Call      libctx.Call
	Via       libctx.Tool // tsh if it was called through it
	Tool      libctx.Tool // what runs
	Path      string      // inside path of the tool's file
	Effect    control.Effect
	Policy    string // the effects control
	Workspace string // host directory
	Cwd       string // inside path
	Arguments jsontext.Value
}

// Encode is the one encoding of the intent: the header, then each member as its
// name, its length in bytes, and its bytes, so that no member can be taken for
// part of another.
func (i Intent) Encode() []byte {
	members := []struct{ name, value string }{
		{"principal", string(i.Principal)}, {"uid", strconv.FormatUint(uint64(i.UID), 10)},
		{"session", string(i.Session)}, {"run", string(i.Run)}, {"call", string(i.Call)},
		{"via", string(i.Via)}, {"tool", string(i.Tool)}, {"path", i.Path},
		{"effect", string(i.Effect)}, {"policy", i.Policy},
		{"workspace", i.Workspace}, {"cwd", i.Cwd}, {"arguments", string(i.Arguments)},
	}
	size := len(header)
	for _, m := range members {
		size += len(m.name) + len(m.value) + 24
	}
	b := append(make([]byte, 0, size), header...)
	for _, m := range members {
		b = append(append(b, m.name...), ' ')
		b = append(strconv.AppendInt(b, int64(len(m.value)), 10), '\n')
		b = append(append(b, m.value...), '\n')
	}
	return b
}

// Digest is the SHA-256 of an intent's encoding.
type Digest [sha256.Size]byte

// Digest is the digest of the encoding.
func (i Intent) Digest() Digest { return sha256.Sum256(i.Encode()) }

// String is "sha256:" and 64 hexadecimal digits, as people and frames have it.
func (d Digest) String() string { return "sha256:" + hex.EncodeToString(d[:]) }
