// Package activate is the activator for machines without systemd: it holds the
// listening socket of every agent of a tree, and that of the models, and starts
// the server of a socket, with the socket, when somebody connects. It never
// accepts a connection itself, so the kernel's queue keeps every client while a
// server starts, ends, or starts again.
package activate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"

	"cortexfs.org/ctxd/internal/child"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/paths"
	"github.com/fsnotify/fsnotify"
)

// Config of Run.
type Config struct {
	Layout paths.Layout
	Log    *log.Logger
	Agent  func(libctx.Agent) Socket // that of an agent
	Others []Socket                  // held all the time
	Ready  func()                    // called once, when every socket accepts
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
	starter := child.NewStarter()
	defer starter.Close()
	set := &sockets{cfg: cfg, starter: starter, held: map[libctx.Agent]context.CancelFunc{}}
	defer set.close()
	for _, socket := range cfg.Others {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		set.hold(ctx, socket)
	}
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
	starter *child.Starter
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
		s.held[agent] = cancel
		s.hold(ctx, s.cfg.Agent(agent))
	}
	for agent, cancel := range s.held {
		if !agents[agent] {
			cancel()
			delete(s.held, agent)
		}
	}
}

// hold keeps one socket until the context ends. It returns when the first attempt
// to take it is over.
func (s *sockets) hold(ctx context.Context, socket Socket) {
	k := &keeper{socket: socket, starter: s.starter, log: s.cfg.Log.With("socket", socket.Name)}
	first := make(chan struct{})
	s.work.Go(func() { k.run(ctx, first) })
	<-first
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
