package modelclient

import (
	"net"
	"os"
	"sync"

	"cortexfs.org/ctxd/internal/child"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// private starts a ctxmodel for one request. It gets no environment, so that no
// provider's library finds a key or a proxy there.
type private struct {
	mu      sync.Mutex
	starter *child.Starter
	alive   sync.WaitGroup
}

// start starts a ctxmodel at the other end of a connection. End closes the gap
// between the end of the connection and that of the process: it kills and waits.
func (p *private) start(program string, l paths.Layout) (conn *net.UnixConn, end func(), err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, errdefs.New(errdefs.KindOf(err), "models: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "models"), os.NewFile(uintptr(fds[1]), "models")
	defer ours.Close()
	defer theirs.Close()
	got, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errdefs.New(errdefs.Internal, "models: %w", err)
	}
	conn = got.(*net.UnixConn)
	process, err := p.ready().Start(child.Program{
		Argv: []string{program, "serve", "--fd", "3", "--root", l.Root, "--config", l.Config, "--secrets", l.Secrets},
		File: theirs,
	})
	if err != nil {
		conn.Close()
		return nil, nil, errdefs.New(errdefs.Unavailable, "models: %w", err)
	}
	p.alive.Add(1)
	return conn, func() {
		defer p.alive.Done()
		process.Kill()
		process.Wait() // of a process we killed: that it failed says nothing
	}, nil
}

func (p *private) ready() *child.Starter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.starter == nil {
		p.starter = child.NewStarter()
	}
	return p.starter
}

// close ends the starter once every process has ended.
func (p *private) close() {
	p.alive.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.starter != nil {
		p.starter.Close()
		p.starter = nil
	}
}
