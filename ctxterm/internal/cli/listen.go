package cli

import (
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"cortexfs.org/ctxterm/internal/filter"
	"cortexfs.org/ctxterm/internal/journal"
	"cortexfs.org/ctxterm/internal/mux"
	"cortexfs.org/ctxterm/internal/ptyproc"
	"cortexfs.org/ctxterm/internal/server"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	resources "cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/unixsock"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// defaultProgram is what a terminal of an agent runs.
const defaultProgram = "/ctx/bin/tsh"

// seal keeps others of this user out of this process, whose descriptors the
// program has no right to, and keeps those from the program.
func seal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return errdefs.New(errdefs.KindOf(err), "close this process to others: %w", err)
	}
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return errdefs.New(errdefs.KindOf(err), "keep descriptors from the program: %w", err)
	}
	return nil
}

// passed is the descriptor that fd:N names, nil for a path.
func passed(flag, value string) (*os.File, error) {
	number, ok := strings.CutPrefix(value, "fd:")
	if !ok {
		return nil, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 3 || strconv.Itoa(n) != number {
		return nil, errdefs.New(errdefs.Invalid, "--%s %.40q: N of fd:N is not a number from 3", flag, value)
	}
	var st unix.Stat_t
	if err := unix.Fstat(n, &st); err != nil {
		return nil, errdefs.New(errdefs.Invalid, "--%s %s: %w", flag, value, err)
	}
	return os.NewFile(uintptr(n), value), nil
}

// listen makes or takes over the socket, and says who may connect to it. A
// terminal whose socket is passed to it is meant to run in a sandbox.
func listen(value string) (*unixsock.Listener, server.Guard, error) {
	uid := uint32(os.Getuid())
	switch f, err := passed("listen", value); {
	case err != nil:
		return nil, nil, err
	case f != nil:
		l, err := unixsock.Inherit(f)
		return l, server.Outside(uid), err
	}
	l, err := unixsock.Listen(value, unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
	return l, server.Beside(uid), err
}

// resource opens the directory in which the terminal is recorded. The caller
// closes it.
func resource(value string) (*os.File, error) {
	dir, err := passed("dir", value)
	if err == nil && dir == nil {
		dir, err = os.OpenFile(value, unix.O_DIRECTORY, 0)
	}
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "--dir: %w", err)
	}
	return dir, nil
}

// idOf is the terminal's id in its resource directory, "" if it has none: it is
// for clients to read, and nothing depends on it.
func idOf(dir *os.File) string {
	d, err := atomicfile.OpenDir("/proc/self/fd/" + strconv.Itoa(int(dir.Fd())))
	if err != nil {
		return ""
	}
	defer d.Close()
	text, err := d.ReadFile("meta.json", libctx.MaxControlFile)
	if err != nil {
		return ""
	}
	meta, err := resources.ParseMeta(text)
	if err != nil {
		return ""
	}
	return meta.ID
}

// serve runs a program on a terminal with a socket.
func serve(c *cli.Context, std Streams) (int, error) {
	if err := seal(); err != nil {
		return 0, err
	}
	size := termwire.DefaultSize
	if flag := c.String("size"); flag != "" {
		var err error
		if size, err = termwire.ParseSize(flag); err != nil {
			return 0, err
		}
	}
	listener, guard, err := listen(c.String("listen"))
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	t := terminal{listener: listener, guard: guard, problems: std.Err}
	t.config = mux.Config{Size: size, Filter: &filter.Filter{Clipboard: c.Bool("clipboard")}, Recorder: unrecorded{}}
	if c.IsSet("dir") {
		dir, err := resource(c.String("dir"))
		if err != nil {
			return 0, err
		}
		defer dir.Close()
		if t.record, err = journal.Open(dir, t.unrecordable); err != nil {
			return 0, err
		}
		defer t.record.Close()
		t.config.ID, t.config.Recorder = idOf(dir), t.record
	}
	argv := c.Args().Slice()
	if len(argv) == 0 {
		argv = []string{defaultProgram}
	}
	stops := make(chan os.Signal, 4)
	signal.Notify(stops, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(stops)
	if err := ptyproc.Adopt(); err != nil {
		return 0, err
	}
	config := ptyproc.Config{Argv: argv, Env: withTerm(std.Env), Size: size}
	if t.record != nil && decides(argv) {
		if config.Third, err = decisions(t.record); err != nil {
			return 0, err
		}
		defer config.Third.Close()
	}
	p, err := start(config)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	if config.Third != nil {
		config.Third.Close()
	}
	return t.run(p, stops)
}
