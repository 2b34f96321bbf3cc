package sandboxrun

import (
	"context"
	"os"
	"strconv"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/procid"
	"golang.org/x/sys/unix"
)

// launch is a sandbox up to its entry step: its processes, and our ends of what
// bwrap was given. Everything is close-on-exec; what bwrap gets is duplicated
// for it by number.
type launch struct {
	box
	inside []*os.File // bwrap's descriptors, by their number there, until it has them

	words   *os.File // what bwrap says
	status  *os.File // its records
	gate    *os.File // it goes on when this is written, or closed
	channel *os.File // the entry step gets its request here, and answers
	mounts  *os.File // the mount table since before it was prepared; nil if it was launched for its call
	known   bool     // Stdio.Started was told of it
}

// launch starts a sandbox and returns it once its first process is known; the
// entry step in there waits for its request then, or soon will. One that is for a
// call at hand is told, if that is set, to started before its gate opens. On an
// error nothing of it is left. The caller serves or ends the launch, and closes it.
func (l *Launcher) launch(ctx context.Context, p *plan, started func(procid.ID) error) (*launch, error) {
	n := &launch{}
	argv, err := n.descriptors(p, l.filter)
	if err == nil {
		n.proc, err = l.start(p.spec.Identity, argv, n.inside)
	}
	if err != nil {
		n.close()
		return nil, err
	}
	fault.Point("sandbox.started")
	n.handedOver()
	err = untilDone(ctx, n.status, func() error { return n.find(n.status) })
	var refused error
	if err == nil && ctx.Err() == nil {
		refused = n.tell(started)
	}
	if err == nil && refused == nil && ctx.Err() == nil {
		fault.Point("sandbox.gate")
		n.await()
		n.gate.Write([]byte{1}) // if bwrap is gone, its words and the channel's end tell
		return n, nil
	}
	n.abandon()
	switch {
	case ctx.Err() != nil:
		err = interrupted(ctx)
	case refused != nil:
		err = refused
	default:
		err = n.explain(err)
	}
	n.close()
	return nil, err
}

// tell tells of the first process, once.
func (n *launch) tell(started func(procid.ID) error) error {
	if started == nil || n.known {
		return nil
	}
	n.known = true
	return started(n.id)
}

// descriptors makes the descriptors and the command line of a launch.
func (n *launch) descriptors(p *plan, filter []byte) (argv []string, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "sandbox: %w", err)
	}
	// The first process of the sandbox keeps these three, and its payload can
	// open them through /proc. So they are not the payload's own, which come
	// with the request, and they are no terminal, which would come back as
	// /dev/console.
	n.give(null)
	n.give(null)
	for _, end := range []struct {
		ours   **os.File
		writes bool // whether bwrap's end is the writing one
	}{{&n.words, true}, {&n.status, true}, {&n.gate, false}} {
		if err := n.pipe(end.ours, end.writes); err != nil {
			return nil, err
		}
	}
	if err := n.socket(&n.channel); err != nil {
		return nil, err
	}
	if err := n.memory("filter", filter); err != nil {
		return nil, err
	}
	for _, text := range p.made {
		if err := n.memory("file", []byte(text)); err != nil {
			return nil, err
		}
	}
	for _, f := range p.copied {
		n.give(f)
	}
	p.copied = nil // ours to close now
	args := len(n.inside)
	if err := n.memory("args", []byte(strings.Join(p.options, "\x00")+"\x00")); err != nil {
		return nil, err
	}
	return append([]string{"bwrap", "--args", strconv.Itoa(args), "--"}, p.command...), nil
}

// give hands a file to bwrap, under the next number.
func (n *launch) give(f *os.File) { n.inside = append(n.inside, f) }

// pipe makes a pipe, gives one end to bwrap and keeps the other.
func (n *launch) pipe(ours **os.File, writes bool) error {
	r, w, err := os.Pipe()
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "sandbox: pipe: %w", err)
	}
	if writes {
		r, w = w, r
	}
	n.give(r)
	*ours = w
	return nil
}

// socket makes a pair of connected sockets and does likewise. Bwrap's end waits,
// ours does not.
func (n *launch) socket(ours **os.File) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "sandbox: channel: %w", err)
	}
	n.give(os.NewFile(uintptr(pair[1]), "channel"))
	err = unix.SetNonblock(pair[0], true)
	*ours = os.NewFile(uintptr(pair[0]), "channel")
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "sandbox: channel: %w", err)
	}
	return nil
}

// memory gives bwrap a file that holds data.
func (n *launch) memory(name string, data []byte) error {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "sandbox: memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	n.give(f)
	if _, err = f.Write(data); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "sandbox: memory file: %w", err)
	}
	return nil
}

// handedOver closes bwrap's ends here, so that what it has ends when it is gone.
func (n *launch) handedOver() {
	for _, f := range n.inside {
		f.Close() // the same file may be there twice
	}
	n.inside = nil
}

// end kills the sandbox, waits until nothing of it is left, and closes the
// launch.
func (n *launch) end() {
	n.kill()
	<-n.over
	n.close()
}

// close closes what is open. Everything of the launch is over, or never was.
func (n *launch) close() {
	n.handedOver()
	for _, f := range []*os.File{n.words, n.status, n.gate, n.channel, n.mounts} {
		if f != nil {
			f.Close()
		}
	}
	n.box.close()
}
