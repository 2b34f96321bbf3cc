// Package daemon puts ctxd together: it prepares the process, finds the tree,
// and runs one agent's server or the activator until a signal or their own end.
package daemon

import (
	"context"
	"os"
	"strconv"
	"time"

	"cortexfs.org/ctxd/internal/calls"
	"cortexfs.org/ctxd/internal/capsock"
	"cortexfs.org/ctxd/internal/config"
	"cortexfs.org/ctxd/internal/emit"
	"cortexfs.org/ctxd/internal/engine"
	"cortexfs.org/ctxd/internal/hook"
	"cortexfs.org/ctxd/internal/host"
	"cortexfs.org/ctxd/internal/modelclient"
	"cortexfs.org/ctxd/internal/privilege"
	"cortexfs.org/ctxd/internal/receipt"
	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/ctxd/internal/sandboxrun"
	"cortexfs.org/ctxd/internal/server"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/rundir"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/view"
	"golang.org/x/sys/unix"
)

// Options of both daemons.
type Options struct {
	Root  string        // --root; "" looks further
	Idle  time.Duration // of an agent's server; negative: the default
	Level string        // of the log on standard error

	Approval time.Duration // that an answer of a person is waited for
}

// idleDefault is how long an activated agent stays without connection and run.
const idleDefault = time.Minute

// prepare makes the process safe to start others from (nothing it creates is
// readable by others, no descriptor it inherited goes further, it has and gets
// no privilege that it does not need) and finds the tree and its runtime
// directory. Passed sockets must have been taken before.
func prepare(o Options) (*log.Logger, paths.Layout, error) {
	logger, layout, err := find(o)
	if err != nil {
		return nil, layout, err
	}
	return logger, layout, rundir.Ensure(layout)
}

// find is prepare without the runtime directory.
func find(o Options) (*log.Logger, paths.Layout, error) {
	none := paths.Layout{}
	unix.Umask(0o077)
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, none, errdefs.New(errdefs.Internal, "close descriptors on exec: %w", err)
	}
	logger, err := newLog(o.Level)
	if err != nil {
		return nil, none, err
	}
	layout, err := paths.Find(config.Env(o.Root))
	if err != nil {
		return nil, none, err
	}
	if !paths.IsTree(layout.Root) {
		return nil, none, errdefs.New(errdefs.NotFound, "%s is not a tree", layout.Root).WithHint("ctx init makes one")
	}
	return logger, layout, privilege.Drop(privilege.Server...)
}

// Agent serves one agent until the context ends, a client stops it, or it was
// idle. The socket is the passed one if there is one, else its own.
func Agent(ctx context.Context, name string, o Options) error {
	agent, err := libctx.ParseAgent(name)
	if err != nil {
		return err
	}
	passed, err := config.PassedSocket()
	if err != nil {
		return err
	}
	logger, layout, err := prepare(o)
	if err != nil {
		return refuseAll(ctx, agent, passed, err)
	}
	logger = logger.With("agent", string(agent))
	supervisor, done := supervised(logger)
	defer done()
	owner, refused := ownerOf(layout, agent)
	if errdefs.Is(refused, errdefs.NotFound) && passed == nil {
		return refused
	}
	listener, err := listen(layout, agent, owner, passed)
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := makeHome(layout, owner); err != nil {
		logger.Warn("home of the owner", "why", err.Error()) // what needs it says so
	}
	if o.Idle < 0 {
		o.Idle = 0
		if passed != nil {
			o.Idle = idleDefault
		}
	}

	ctxtool := config.Program("ctxtool")
	tools := &toolrun.Runner{
		Layout: layout, Agent: agent, Ctxtool: ctxtool, Tsh: config.Program("tsh"),
		Programs: config.Programs(),
	}
	caller := &calls.Caller{Tools: tools, Hooks: hook.New(tools), Log: logger}
	models := modelclient.New(layout, config.Program("ctxmodel"))
	defer models.Close()
	capabilities := capsock.New(capsock.Config{Layout: layout, Agent: agent, Owner: owner, Log: logger})
	defer capabilities.Close()
	work := &worker{
		Host:         &host.Host{Tools: tools, Calls: caller, Log: logger},
		engine:       &engine.Engine{Tools: tools, Calls: caller, Models: models, Log: logger},
		capabilities: capabilities,
	}
	boxes := &sandboxes{cfg: sandboxrun.Config{Entry: ctxtool, Log: logger}, work: work.Host, log: logger}
	defer boxes.close()
	work.boxes = boxes
	_ = boxes.ready() // a failure is logged, and every request gets it until it has passed
	terminals := &receipt.Keeper{Layout: layout, Agent: agent, Owner: owner}
	emitter := emit.New(emit.Config{Agent: agent, Dial: terminals.Dial, Log: logger})
	defer emitter.Close()
	hub := run.New(run.Config{
		Agent: agent, Worker: work, Log: logger, Approval: o.Approval,
		Place: session.Place{Layout: layout, Agent: agent, Owner: owner},
		Show:  func(s libctx.Session) run.Shower { return emitter.Run(s) },
	})
	defer announce(layout, agent, owner, logger)()
	defer supervisor.Watch(ctx, func(context.Context) { hub.Busy() })()
	supervisor.Ready()
	logger.Info("serving", "version", libctx.Version, "pid", os.Getpid())
	return server.New(server.Config{
		Agent: agent, Owner: owner.UID, Hub: hub, Listener: listener, Idle: o.Idle, Log: logger,
		Check: check(work), Terminals: terminals,
	}).Serve(ctx)
}

// refusal is how long a server that can only refuse waits for more clients.
const refusal = time.Second

// refuseAll is what an activated server does that can not serve: whoever is
// queued is told why, instead of waiting for a server that never comes. The
// error is returned too, for the activator's backoff.
func refuseAll(ctx context.Context, agent libctx.Agent, passed *os.File, why error) error {
	if passed == nil {
		return why
	}
	listener, err := unixsock.Inherit(passed)
	if err != nil {
		return why
	}
	defer listener.Close()
	logger := log.Discard()
	_ = server.New(server.Config{
		Agent: agent, Owner: asuser.Self().UID, Listener: listener, Idle: refusal, Log: logger,
		Hub:   run.New(run.Config{Agent: agent, Log: logger, Worker: refusing{why: why}}),
		Check: check(refusing{why: why}),
	}).Serve(ctx)
	return why
}

// check refuses requests that need nothing of the agent, as those that do are.
func check(w run.Worker) func() error {
	return func() error {
		_, err := w.Load()
		return err
	}
}

// makeHome makes home/UID of an agent's owner where only root can: below a
// directory that is root's. What the owner can make is made with the owner's
// rights when it is needed.
func makeHome(l paths.Layout, owner asuser.Identity) error {
	if !l.System || owner.IsSelf() {
		return nil
	}
	root, err := atomicfile.OpenDir(l.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	homes, err := root.Sub("home")
	if err != nil {
		return err
	}
	defer homes.Close()
	name := strconv.FormatUint(uint64(owner.UID), 10)
	if _, err := homes.Lstat(name); !errdefs.Is(err, errdefs.NotFound) {
		return err
	}
	home, err := homes.MkdirAll(name, 0o700)
	if err != nil {
		return err
	}
	defer home.Close()
	return unix.Fchown(home.FD(), int(owner.UID), int(owner.GID))
}

// ownerOf is as whom the agent runs. While its files are refused nobody but the
// daemon's own uid (and uid 0) is answered, with the refusal.
func ownerOf(l paths.Layout, agent libctx.Agent) (asuser.Identity, error) {
	a, err := view.Load(l, agent)
	if err != nil {
		return asuser.Self(), err
	}
	return a.Owner, nil
}

// listen takes the passed socket, or binds the agent's own and leads the tree's
// name to it.
func listen(l paths.Layout, agent libctx.Agent, owner asuser.Identity, passed *os.File) (*unixsock.Listener, error) {
	if passed != nil {
		return unixsock.Inherit(passed)
	}
	return Bind(l, agent, owner)
}

// Bind makes the listening socket of an agent, its owner's alone, and the link
// agent/NAME.sock in the tree.
func Bind(l paths.Layout, agent libctx.Agent, owner asuser.Identity) (*unixsock.Listener, error) {
	listener, err := unixsock.Listen(l.Socket(agent), unixsock.Options{
		Perm: 0o600, UID: int(owner.UID), GID: int(owner.GID),
	})
	if err != nil {
		return nil, err
	}
	if err := link(l, agent); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

// link makes agent/NAME.sock lead to the socket. What is in the way and is
// neither a link nor a socket stays there.
func link(l paths.Layout, agent libctx.Agent) error {
	name := string(agent) + ".sock"
	dir, err := os.OpenFile(l.Agents(), unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "agent directory: %w", err)
	}
	defer dir.Close()
	at := int(dir.Fd())
	target := l.Socket(agent)
	var st unix.Stat_t
	err = unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		if now, err := os.Readlink(l.AgentLink(agent)); err == nil && now == target {
			return nil
		}
	} else if err == nil && st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return errdefs.New(errdefs.Exists, "%s is in the way of the agent's socket", l.AgentLink(agent))
	}
	temp := "." + name + "." + strconv.Itoa(os.Getpid())
	unix.Unlinkat(at, temp, 0)
	if err := unix.Symlinkat(target, at, temp); err != nil {
		return errdefs.New(errdefs.KindOf(err), "link %s: %w", l.AgentLink(agent), err)
	}
	if err := unix.Renameat(at, temp, at, name); err != nil {
		unix.Unlinkat(at, temp, 0)
		return errdefs.New(errdefs.KindOf(err), "link %s: %w", l.AgentLink(agent), err)
	}
	return nil
}

// announce writes the pid control, for people and for ctx agent ps; the result
// empties it again. It is no authority: whoever reads it checks the process. In a
// control directory that is the owner's, root is a stranger like others.
func announce(l paths.Layout, agent libctx.Agent, owner asuser.Identity, logger *log.Logger) func() {
	write := func(text string) {
		err := writePID(l, agent, text)
		if errdefs.Is(err, errdefs.Denied) {
			err = owner.Do(func() error { return writePID(l, agent, text) })
		}
		if err != nil {
			logger.Warn("pid control", "why", err.Error())
		}
	}
	write(strconv.Itoa(os.Getpid()) + "\n")
	return func() { write("") }
}

func writePID(l paths.Layout, agent libctx.Agent, text string) error {
	dir, err := atomicfile.OpenDir(l.Agents())
	if err != nil {
		return err
	}
	defer dir.Close()
	control, err := dir.Sub(string(agent) + ".d")
	if err != nil {
		return err
	}
	defer control.Close()
	return control.ReplaceLazy("pid", []byte(text), 0o644)
}
