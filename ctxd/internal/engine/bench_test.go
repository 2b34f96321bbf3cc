package engine

import (
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/prompt"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// BenchmarkRequest makes the request of a turn from a conversation of that many
// turns, each a call and its result of 1 KiB.
func BenchmarkRequest(b *testing.B) {
	for _, turns := range []int{1, 8, 32, 128} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			entries := []session.Entry{entry("r", "user", wire.Text("go"))}
			for i := range turns {
				id := string(callID("e1", i))
				res := result(id)
				res.Text = strings.Repeat("line of text\n", 80)
				entries = append(entries, entry("r", "assistant", call(id, "tsh", `{"args":["fs.read","README.md"]}`)), entry("r", "tool", res))
			}
			for b.Loop() {
				in := prompt.Input{System: strings.Repeat("system ", 600), Model: "a/b", Window: 128 << 10}
				in.Rows, in.Run = rows(entries, "r")
				fitted, err := prompt.Fit(in)
				if err != nil {
					b.Fatal(err)
				}
				g := &modelwire.Generate{Version: modelwire.Version, Model: "a/b", Messages: fitted.Messages}
				line, err := modelwire.MarshalRequest(g)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(line)))
			}
		})
	}
}
