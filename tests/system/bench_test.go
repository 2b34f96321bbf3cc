package system

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"cortexfs.org/tests/internal/machine"
	"cortexfs.org/tests/internal/world"
)

// probe is a script of perl that asks a socket N times for a pong, each over a
// connection of its own, and prints the milliseconds each took. With a unit, that
// is stopped before.
const probe = `
use IO::Socket::UNIX; use Time::HiRes qw(time);
my ($socket, $n, $unit) = @ARGV;
for (1 .. $n) {
	system("systemctl", "stop", $unit) if $unit;
	my $began = time;
	my $s = IO::Socket::UNIX->new(Peer => $socket) or die $!;
	print $s "{\"op\":\"ping\"}\n"; $s->flush;
	defined(my $line = <$s>) or die "no answer";
	printf "%.2f\n", 1000 * (time - $began);
}`

// medianOf is the median of numbers, one a line.
func medianOf(b *testing.B, text string) float64 {
	b.Helper()
	var all []float64
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		n, err := strconv.ParseFloat(s.Text(), 64)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, n)
	}
	for i := range all { // few
		for j := i; j > 0 && all[j] < all[j-1]; j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	return all[len(all)/2]
}

// BenchmarkConnect: from connect to the first frame, of an agent that has to be
// started and of one that runs.
func BenchmarkConnect(b *testing.B) {
	m := bench(b)
	m.Must(b, "sh", "-c", "ctx --quiet agent new cold --model debug/echo --owner 1; ctx agent status cold")
	b.Cleanup(func() { m.Must(b, "ctx", "--quiet", "agent", "rm", "cold", "--purge") })
	for b.Loop() {
		b.ReportMetric(medianOf(b, m.Must(b, "perl", "-e", probe, "/run/cortexfs/agent/cold.sock", "20", "ctxd@cold.service")), "cold-ms")
		b.ReportMetric(medianOf(b, m.Must(b, "perl", "-e", probe, "/run/cortexfs/agent/cold.sock", "50")), "warm-ms")
	}
}

// BenchmarkThousand: a machine with 1,000 agents that nobody talks to.
func BenchmarkThousand(b *testing.B) {
	const agents = 1000
	m := bench(b)
	boot := func() float64 {
		out := m.Must(b, "sh", "-c", "systemctl show --value -p UserspaceTimestampMonotonic -p FinishTimestampMonotonic")
		var from, to float64
		fmt.Sscan(out, &from, &to)
		return (to - from) / 1e3
	}
	memory := func() float64 {
		n, _ := strconv.ParseFloat(strings.TrimSpace(m.Must(b, "sh", "-c", "sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/1/status")), 64)
		return n / 1024
	}
	for b.Loop() {
		m.Reboot(b)
		was, held := boot(), memory()
		began := time.Now()
		each(b, agents, "ctx --quiet agent new idle-$i --model debug/echo --owner 1")
		b.ReportMetric(float64(time.Since(began).Milliseconds())/agents, "new-ms/agent")
		m.Reboot(b)
		if n := strings.TrimSpace(m.Must(b, "sh", "-c", "systemctl list-units --no-legend 'ctxd@idle-*.socket' | wc -l")); n != strconv.Itoa(agents) {
			b.Fatalf("%s sockets listen", n)
		}
		if out := m.Must(b, "sh", "-c", "pidof ctxd ctxmodel || true"); out != "" {
			b.Fatalf("idle, and these run: %s", out)
		}
		b.ReportMetric(boot()-was, "boot-ms-added")
		b.ReportMetric(memory()-held, "systemd-MiB-added")
		each(b, agents, "ctx --quiet agent rm idle-$i --purge")
	}
}

// each runs a command for the numbers from 1 to n, some at a time.
func each(b *testing.B, n int, command string) {
	b.Helper()
	const some = 25
	for first := 1; first <= n; first += some {
		bench(b).Must(b, "sh", "-c", fmt.Sprintf("for i in $(seq %d %d); do %s || exit 1; done", first, first+some-1, command))
	}
}

// bench is the machine of a benchmark.
func bench(b *testing.B) *machine.Machine {
	b.Helper()
	programs = world.Bin(b)
	m, err := booted()
	if err != nil {
		b.Fatal(err)
	}
	ready.Do(func() { m.Must(b, "ctx", "init", "--system") })
	return m
}
