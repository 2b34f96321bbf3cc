package session

import (
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestConversationKept: what a session keeps of its last answer changes no
// answer, wherever the head moves and however much is asked for.
func TestConversationKept(t *testing.T) {
	s := open(t, place(t), "default")
	runs := 0
	rapid.Check(t, func(r *rapid.T) {
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			switch rapid.IntRange(0, 2).Draw(r, "what") {
			case 0:
				runs++
				run := libctx.NewRun()
				commit(t, s, begin(s, run, libctx.ClientID(fmt.Sprint("m", runs)), "q")...)
				commit(t, s, says(run, "w", "call-1"), result(run, "call-1", strings.Repeat("r", rapid.IntRange(1, 3000).Draw(r, "size"))))
				commit(t, s, says(run, "a"), done(run))
			case 1:
				if n := len(s.st.offs); n > 0 {
					run := libctx.NewRun()
					runs++
					records := begin(s, run, libctx.ClientID(fmt.Sprint("m", runs)), "elsewhere")
					user := records[0].(*Entry)
					user.Parent = entryID(uint32(rapid.IntRange(0, n).Draw(r, "parent")))
					commit(t, s, records...)
					commit(t, s, says(run, "b"), done(run))
				}
			}
			max := rapid.IntRange(0, 20_000).Draw(r, "max")
			got, err := s.Conversation(max)
			if err != nil {
				r.Fatal(err)
			}
			s.recent = nil
			want, err := s.Conversation(max)
			if err != nil {
				r.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				r.Fatalf("max %d: %s", max, d)
			}
			if rapid.Bool().Draw(r, "ask again") {
				if _, err := s.Conversation(rapid.IntRange(0, 20_000).Draw(r, "other max")); err != nil {
					r.Fatal(err)
				}
			}
		}
	})
}
