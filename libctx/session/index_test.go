package session

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"testing"

	"cortexfs.org/libctx"
)

// sampleIndex is the index of a session with everything in it.
func sampleIndex(t testing.TB) []byte {
	t.Helper()
	p := place(t)
	s := open(t, p, "default")
	for i := range 3 {
		turn(t, s, libctx.ClientID(fmt.Sprint("m", i)), "q", "a")
	}
	run := libctx.NewRun()
	commit(t, s, append(begin(s, run, "m", "q"), says(run, "", "c1", "c2"))...)
	commit(t, s, beginTsh(libctx.NewRun(), "t"))
	closeOf(t, s)
	return []byte(read(t, p.dir("default")+"/"+indexFile))
}

func reseal(b []byte) []byte {
	if len(b) < 4 {
		return b
	}
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
	return b
}

func TestIndexRoundTrip(t *testing.T) {
	b := sampleIndex(t)
	x, err := decodeIndex(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x.encode(), b) {
		t.Error("an index that is read is written otherwise")
	}
	if len(x.state.fold.runs) != 2 || len(x.state.offs) != 8 {
		t.Errorf("state is %+v", x.state)
	}
}

// A byte that is wrong anywhere makes it no index.
func TestIndexBytes(t *testing.T) {
	b := sampleIndex(t)
	for i := range b {
		c := bytes.Clone(b)
		c[i] ^= 0x41
		if _, err := decodeIndex(c); err == nil {
			t.Fatalf("byte %d may be wrong", i)
		}
		if _, err := decodeIndex(b[:i]); err == nil {
			t.Fatalf("%d bytes are an index", i)
		}
	}
}

func FuzzDecodeIndex(f *testing.F) {
	b := sampleIndex(f)
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte(indexMagic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		in = reseal(bytes.Clone(in)) // past the checksum, the content is still checked
		x, err := decodeIndex(in)
		if err != nil {
			return
		}
		st := x.state
		seen := 0
		for n := st.tip; n != 0; n = st.parent(n) {
			if off := int64(st.offs[n-1]); off < 0 || off >= st.size {
				t.Fatalf("entry %d is at %d of %d", n, off, st.size)
			}
			if seen++; seen > len(st.offs) {
				t.Fatal("the branch is a loop")
			}
		}
		st.latest()
		st.clients.find("m1")
		if !bytes.Equal(x.encode(), in) {
			t.Error("an index that is read is written otherwise")
		}
	})
}

// How an index is used: as it is, after its checksum, or not at all. Whatever
// is the case, the state is that of a full scan.
func TestIndexTrust(t *testing.T) {
	tail := func(t *testing.T, p Place) { // a killed host's last run, behind the index
		s := open(t, p, "default")
		run := libctx.NewRun()
		commit(t, s, begin(s, run, "tail", "q")...)
		commit(t, s, says(run, "a", "c1"))
		s.die()
	}
	for name, test := range map[string]struct {
		change  func(t *testing.T, p Place)
		trusted bool
	}{
		"unchanged": {func(*testing.T, Place) {}, true},
		"longer":    {tail, true},
		"copied": {func(t *testing.T, p Place) {
			file := p.dir("default") + "/messages.jsonl"
			text := read(t, file)
			os.Remove(file)
			write(t, file, text)
		}, true},
		"rewritten": {func(t *testing.T, p Place) {
			file := p.dir("default") + "/messages.jsonl"
			write(t, file, string(bytes.Replace([]byte(read(t, file)), []byte("answer"), []byte("ANSWER"), 1)))
		}, false},
		"shorter": {func(t *testing.T, p Place) {
			file := p.dir("default") + "/messages.jsonl"
			text := read(t, file)
			write(t, file, text[:bytes.LastIndexByte([]byte(text[:len(text)-1]), '\n')+1])
		}, false},
		"index of nothing": {func(t *testing.T, p Place) { write(t, p.dir("default")+"/"+indexFile, "") }, false},
		"index damaged": {func(t *testing.T, p Place) {
			file := p.dir("default") + "/" + indexFile
			b := []byte(read(t, file))
			b[len(b)/2]++
			write(t, file, string(b))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := threeTurns(t)
			test.change(t, p)
			ledger := []byte(read(t, p.dir("default")+"/messages.jsonl"))
			f, err := os.Open(p.dir("default") + "/messages.jsonl")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var x *index
			if b := []byte(read(t, p.dir("default")+"/"+indexFile)); len(b) > 0 {
				x, _ = decodeIndex(b)
			}
			used, err := trusted(f, int64(len(ledger)), x)
			if err != nil {
				t.Fatal(err)
			}
			st, err := loadLedger(f, int64(len(ledger)), x)
			if err != nil {
				t.Fatal(err)
			}
			if (used != nil) != test.trusted {
				t.Errorf("index used: %v", used != nil)
			}
			full := newState()
			if err := scan(f, full, int64(len(ledger)), nil); err != nil {
				t.Fatal(err)
			}
			if a, b := (&index{state: st}).encode(), (&index{state: full}).encode(); !bytes.Equal(a, b) {
				t.Errorf("state is %+v, want %+v", st, full)
			}
			s := open(t, p, "default")
			checkFiles(t, p, s, ledger, true)
		})
	}
}

// The index is written at the end of a run when enough was appended.
func TestIndexWhileOpen(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	turn(t, s, "m1", "q", "a")
	if _, err := os.Stat(p.dir("default") + "/" + indexFile); err == nil {
		t.Error("an index after one small run")
	}
	turn(t, s, "m2", "q", string(bytes.Repeat([]byte("x"), libctx.IndexEvery)))
	x, err := decodeIndex([]byte(read(t, p.dir("default")+"/"+indexFile)))
	if err != nil || x.state.size != s.st.size {
		t.Errorf("index: %v", err)
	}
	before := read(t, p.dir("default")+"/"+indexFile)
	turn(t, s, "m3", "q", "a")
	if read(t, p.dir("default")+"/"+indexFile) != before {
		t.Error("an index for every run")
	}
	s.die()
}
