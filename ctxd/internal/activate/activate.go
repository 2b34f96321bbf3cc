// Package activate is the activator for machines without systemd: it holds the
// listening socket of every agent of a tree and starts the agent's server, with
// that socket, when somebody connects. It never accepts a connection itself, so
// the kernel's queue keeps every client while a server starts, ends, or starts
// again.
package activate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/unixsock"
	"github.com/fsnotify/fsnotify"
)

// Config of Run.
type Config struct {
	Layout  paths.Layout
	Log     *log.Logger
	Bind    func(libctx.Agent) (*unixsock.Listener, error) // makes an agent's socket
	Command func(libctx.Agent) []string                    // argv of its server, argv[0] a path
	Env     []string                                       // of the servers
	Ready   func()                                         // called once, when every socket accepts
}

// Run holds the sockets until the context ends, then ends the servers it
// started and waits for them.
func Run(ctx context.Context, cfg Config) error {
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "watch %s: %w", cfg.Layout.Agents(), err)
	}
	defer watch.Close()
	if err := watch.Add(cfg.Layout.Agents()); err != nil {
		return errdefs.New(errdefs.KindOf(err), "watch %s: %w", cfg.Layout.Agents(), err)
	}
	s := newStarter(cfg.Env)
	defer s.close()
	set := &sockets{cfg: cfg, starter: s, held: map[libctx.Agent]context.CancelFunc{}}
	defer set.close()
	set.sync(ctx)
	cfg.Ready()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-watch.Events:
			if !ok {
				return errdefs.New(errdefs.IO, "the watch on %s ended", cfg.Layout.Agents())
			}
			if strings.HasSuffix(e.Name, ".d") {
				set.sync(ctx)
			}
		case err := <-watch.Errors:
			// Events were lost: look at everything again.
			cfg.Log.Warn("watch", "why", err.Error())
			set.sync(ctx)
		}
	}
}

// sockets is the set of agents whose sockets are held.
type sockets struct {
	cfg     Config
	starter *starter
	held    map[libctx.Agent]context.CancelFunc
	work    sync.WaitGroup
}

// sync holds the sockets of the agents that exist now, and no others.
func (s *sockets) sync(ctx context.Context) {
	agents, err := list(s.cfg.Layout)
	if err != nil {
		s.cfg.Log.Error("agents", "why", err.Error())
		return
	}
	for agent := range agents {
		if _, ok := s.held[agent]; ok {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		k := &keeper{
			agent: agent, cfg: s.cfg, starter: s.starter,
			log: s.cfg.Log.With("agent", string(agent)),
		}
		first := make(chan struct{})
		s.held[agent] = cancel
		s.work.Go(func() { k.run(ctx, first) })
		<-first
	}
	for agent, cancel := range s.held {
		if !agents[agent] {
			cancel()
			delete(s.held, agent)
		}
	}
}

func (s *sockets) close() {
	for _, cancel := range s.held {
		cancel()
	}
	s.work.Wait()
}

// list is the agents of the tree: everything with the name of a control
// directory, also what is none. Such an agent is refused by its server, which
// says why; without a socket nobody would hear it.
func list(l paths.Layout) (map[libctx.Agent]bool, error) {
	entries, err := os.ReadDir(l.Agents())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	agents := map[libctx.Agent]bool{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".d")
		if !ok {
			continue
		}
		if agent, err := libctx.ParseAgent(name); err == nil {
			agents[agent] = true
		}
	}
	return agents, nil
}
