package benchterm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	emulator "cortexfs.org/tests/internal/screen"
	"golang.org/x/sys/unix"
)

// answer is how flood echo answers a key.
var answer = regexp.MustCompile("<([0-9]{6})>")

// slowest is how long one flood may take: screen draws 1 MB a second at its worst.
const slowest = 20 * time.Minute

func (b *bench) flood() string { return filepath.Join(b.w.Bin, "flood") }

// flow is one flood: what the program needed, until a client had all of it, and
// what had become of the memory of whoever keeps the terminal.
type flow struct {
	took   time.Duration // of the program, for all it wrote
	last   time.Duration // from the gate until the first client had the end; 0 without one
	memory int           // KiB
}

// flow floods a terminal with so many clients joined, the last of them stopped
// if there are several.
func (b *bench) flow(r rival, megabytes, clients int, kind string) flow {
	b.Helper()
	gate := b.scratch() + "/gate"
	b.must(unix.Mkfifo(gate, 0o600))
	join, end := r.serve(b, b.flood(), "lines", fmt.Sprint(megabytes*1000*1000), kind, gate)
	defer end()
	complete := make(chan time.Time, 1)
	var joined sync.WaitGroup
	for i := range clients {
		cmd := join()
		var tail []byte
		first := true
		joined.Add(1)
		_, leave := b.onTerminal(cmd, func(p []byte) {
			if first { // it has drawn something: it is there
				first = false
				joined.Done()
			}
			if i == 0 {
				tail = append(tail, p...)
				if len(tail) > 4096 {
					tail = append(tail[:0], tail[len(tail)-4096:]...)
				}
				if bytes.Contains(tail, []byte("THE END")) {
					select {
					case complete <- time.Now():
					default:
					}
				}
			}
		})
		defer leave()
		if i > 0 && i == clients-1 {
			defer cmd.Process.Signal(unix.SIGCONT)
			joined.Wait()
			b.must(cmd.Process.Signal(unix.SIGSTOP))
		}
	}
	joined.Wait()
	g, err := os.OpenFile(gate, os.O_WRONLY, 0)
	b.must(err)
	begun := time.Now()
	g.Close()
	b.w.T = b.B
	b.w.AwaitWithin(slowest, filepath.Dir(gate), func() bool { return exists(gate + ".done") })
	text, err := os.ReadFile(gate + ".done")
	b.must(err)
	var pid, parent int
	var ns int64
	_, err = fmt.Sscan(string(text), &pid, &parent, &ns)
	b.must(err)
	f := flow{took: time.Duration(ns)}
	if clients > 0 {
		select {
		case at := <-complete:
			f.last = at.Sub(begun)
		case <-time.After(30 * time.Second): // the program has written it; dtach drops what a client does not take
			b.Logf("%s: the first of %d clients never saw the end", r.name, clients)
		}
	}
	if parent != os.Getpid() {
		f.memory = resident(parent)
	}
	b.must(unix.Kill(pid, unix.SIGKILL))
	return f
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// resident is the memory of a process, in KiB.
func resident(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib
		}
	}
	return 0
}

func rate(mb int, d time.Duration) string {
	if d == 0 {
		return "never"
	}
	return fmt.Sprintf("%.1f MB/s", float64(mb)/d.Seconds())
}

// floods measures how fast a program gets rid of its output, by clients.
func (b *bench) floods() {
	b.row(fmt.Sprintf("%d MB of output", *megabytes), "program", "of raw PTY", "one client has all", "")
	for _, kind := range []string{"plain", "coloured"} {
		floor := map[int]time.Duration{}
		for _, clients := range []int{0, 1, 8} {
			for _, r := range rivals() {
				if r.name == "raw PTY" && clients > 0 {
					continue
				}
				f := b.flow(r, *megabytes, clients, kind)
				if r.name == "raw PTY" {
					floor[0] = f.took
				}
				name := fmt.Sprintf("  %s, %s, %d clients", kind, r.name, clients)
				if clients == 8 {
					name += ", one stopped"
				}
				last := ""
				if clients > 0 {
					last = rate(*megabytes, f.last)
				}
				b.row(name, rate(*megabytes, f.took), fmt.Sprintf("%.2f×", float64(floor[0])/float64(f.took)), last, "")
			}
		}
	}
}

// echoes measures from a key to its echo, through an attached client.
func (b *bench) echoes() {
	b.row(fmt.Sprintf("echo of %d keys", *keys), "p50", "p99", "of dtach, p50", "p99")
	took := map[string][]time.Duration{}
	for _, r := range rivals() {
		took[r.name] = b.echo(r)
	}
	q := func(name string, q float64) time.Duration {
		all := slices.Sorted(slices.Values(took[name]))
		return all[min(int(q*float64(len(all))), len(all)-1)]
	}
	for _, r := range rivals() {
		b.row("  "+r.name,
			fmt.Sprintf("%.3f ms", q(r.name, 0.5).Seconds()*1e3), fmt.Sprintf("%.3f ms", q(r.name, 0.99).Seconds()*1e3),
			fmt.Sprintf("%.2f×", float64(q(r.name, 0.5))/float64(q("dtach", 0.5))),
			fmt.Sprintf("%.2f×", float64(q(r.name, 0.99))/float64(q("dtach", 0.99))))
	}
}

func (b *bench) echo(r rival) []time.Duration {
	b.Helper()
	saw := make(chan int, 1) // the highest number that was answered
	var tail []byte
	seen := func(p []byte) {
		tail = append(tail, p...)
		highest := 0
		for _, m := range answer.FindAllSubmatch(tail, -1) {
			if n, _ := strconv.Atoi(string(m[1])); n > highest {
				highest = n
			}
		}
		tail = append(tail[:0], tail[max(0, len(tail)-16):]...)
		if highest > 0 {
			select {
			case <-saw:
			default:
			}
			saw <- highest
		}
	}
	var master *os.File
	if r.name == "raw PTY" {
		m, end := b.onTerminal(b.w.Command("flood", "echo"), seen)
		defer end()
		master = m
	} else {
		join, end := r.serve(b, b.flood(), "echo")
		defer end()
		m, leave := b.onTerminal(join(), seen)
		defer leave()
		master = m
	}
	press := func(patience time.Duration, until int) (int, bool) {
		_, err := master.Write([]byte("k"))
		b.must(err)
		late := time.NewTimer(patience)
		defer late.Stop()
		for {
			select {
			case n := <-saw:
				if n >= until {
					return n, true
				}
			case <-late.C:
				return 0, false
			}
		}
	}
	// The first answer is the sign that somebody listens; keys before may be lost,
	// or answered late.
	at, listens := 0, false
	for !listens {
		at, listens = press(200*time.Millisecond, 1)
	}
	for quiet := false; !quiet; {
		select {
		case at = <-saw:
		case <-time.After(500 * time.Millisecond):
			quiet = true
		}
	}
	var all []time.Duration
	for i := range *keys {
		begun := time.Now()
		if _, ok := press(10*time.Second, at+i+1); !ok {
			b.Fatalf("%s: no echo of key %d", r.name, i)
		}
		all = append(all, time.Since(begun))
	}
	return all
}

// attaches measures from the start of a client to the right picture.
func (b *bench) attaches() {
	b.row("from attach to the right picture", "p50", "max", "", "")
	for _, r := range rivals() {
		if r.name == "raw PTY" {
			continue
		}
		join, end := r.serve(b, b.flood(), "draw", fmt.Sprint(rows))
		var all []time.Duration
		if r.name != "dtach" { // keeps no picture: the program would have to draw it again
			for range 20 {
				begun := time.Now()
				s := emulator.Start(b.B, join(), columns, rows+b.status(r))
				s.See("last-row")
				all = append(all, time.Since(begun))
				if text := s.Text(); !strings.Contains(text, "row 1 of a picture") || !strings.Contains(text, "row 12 of a picture") {
					b.Fatalf("%s drew:\n%s", r.name, text)
				}
				s.Signal(unix.SIGHUP)
				s.Exit()
			}
		}
		end()
		if all == nil {
			b.row("  "+r.name, "never", "", "", "")
			continue
		}
		slices.Sort(all)
		b.row("  "+r.name, fmt.Sprintf("%.1f ms", all[len(all)/2].Seconds()*1e3), fmt.Sprintf("%.1f ms", all[len(all)-1].Seconds()*1e3), "", "")
	}
}

// status is how many lines a client needs for itself.
func (b *bench) status(r rival) int {
	if r.name == "tmux" {
		return 1
	}
	return 0
}

// memory measures what keeps a terminal, idle and after much output.
func (b *bench) memory() {
	b.row("memory of what keeps the terminal", "idle", fmt.Sprintf("after %d MB", *grown), "", "")
	for _, r := range rivals() {
		if r.name == "raw PTY" {
			continue
		}
		idle, after := b.flow(r, 0, 0, "plain"), b.flow(r, *grown, 0, "plain")
		b.row("  "+r.name, fmt.Sprintf("%.1f MB", float64(idle.memory)/1e3), fmt.Sprintf("%.1f MB", float64(after.memory)/1e3), "", "")
	}
}
