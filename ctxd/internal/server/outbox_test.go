package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
)

func TestOutboxIsBounded(t *testing.T) {
	o := newOutbox()
	line := make([]byte, 64<<10)
	taken := 0
	for o.try(line) {
		taken++
	}
	if taken*len(line) > libctx.MaxOutboxBytes {
		t.Errorf("took %d bytes, the bound is %d", taken*len(line), libctx.MaxOutboxBytes)
	}
	o.force([]byte("lagged\n"))
	small := newOutbox()
	for n := 0; small.try([]byte("x\n")); n++ {
		if n > libctx.MaxOutboxFrames {
			t.Fatalf("took more than %d frames", libctx.MaxOutboxFrames)
		}
	}
}

func TestOutboxTakesOneLineOfAnySize(t *testing.T) {
	if !newOutbox().try(make([]byte, libctx.MaxOutboxBytes+1)) {
		t.Error("an empty box refused a line")
	}
}

func TestPutWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		big := make([]byte, libctx.MaxOutboxBytes)
		o.try(big)
		done := make(chan error, 1)
		go func() { done <- o.put(context.Background(), []byte("late\n")) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("put did not wait: %v", err)
		default:
		}
		o.next()
		synctest.Wait()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

func TestPutEndsWithItsContextAndItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		o.try(make([]byte, libctx.MaxOutboxBytes))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 2)
		go func() { done <- o.put(ctx, []byte("x\n")) }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled put = %v", err)
		}
		go func() { done <- o.put(context.Background(), []byte("x\n")) }()
		synctest.Wait()
		gone := errors.New("gone")
		o.fail(gone)
		if err := <-done; !errors.Is(err, gone) {
			t.Errorf("put to a client that left = %v", err)
		}
	})
}

func TestDrainWritesWhatWasTakenBeforeClose(t *testing.T) {
	o := newOutbox()
	for _, l := range []string{"a\n", "b\n"} {
		o.try([]byte(l))
	}
	o.close()
	if err := o.put(context.Background(), []byte("c\n")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("put after close = %v", err)
	}
	var out bytes.Buffer
	o.drain(&out)
	if out.String() != "a\nb\n" {
		t.Errorf("wrote %q", out.String())
	}
}

// TestAnswerOfAnEndingServer: a client hears what was done, not that the server
// ends.
func TestAnswerOfAnEndingServer(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	end()
	c := &conn{out: newOutbox()}
	if err := c.answer(ctx, &wire.Accepted{Head: wire.Head{Type: "accepted"}, Op: "cancel"}); err != nil {
		t.Errorf("answer = %v", err)
	}
	c.out.close()
	var out bytes.Buffer
	c.out.drain(&out)
	if !strings.Contains(out.String(), `"accepted"`) {
		t.Errorf("wrote %q", out.String())
	}
}

// TestEveryOperationHasANeed: a row that nobody may use, or everybody, is a
// mistake in the table.
func TestEveryOperationHasANeed(t *testing.T) {
	for name, row := range ops {
		if row.need == 0 || row.handle == nil {
			t.Errorf("operation %s has no need or no handler", name)
		}
	}
}
