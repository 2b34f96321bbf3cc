package server

import (
	"context"
	"os"

	"cortexfs.org/ctxd/internal/authz"
	"cortexfs.org/ctxd/internal/receipt"
	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// op is one row of the table of operations: who may use it and what it does. A
// row without a need admits nobody.
type op struct {
	need   authz.Need
	check  bool // refused while the agent's files are refused; what is not, only ends or answers things or reads the files itself
	handle func(s *Server, ctx context.Context, c *conn, r wire.Request) error
}

// ops is the table of operations of the agent socket (docs/reference/socket.md).
// A handler that returns an error has written nothing; the error becomes the
// answer.
var ops = map[string]op{
	"ping":      {authz.OwnerOrRoot, true, (*Server).ping},
	"send":      {authz.OwnerOrRoot, false, (*Server).send},
	"tsh":       {authz.OwnerOrRoot, false, (*Server).tsh},
	"resume":    {authz.OwnerOrRoot, true, (*Server).resume},
	"cancel":    {authz.OwnerOrRoot, false, (*Server).cancelRun},
	"approve":   {authz.OwnerOrRoot, false, (*Server).approve},
	"steer":     {authz.OwnerOrRoot, true, (*Server).say},
	"follow_up": {authz.OwnerOrRoot, true, (*Server).say},
	"finish":    {authz.OwnerOrRoot, true, (*Server).say},
	"status":    {authz.OwnerOrRoot, true, (*Server).status},
	"stop":      {authz.OwnerOrRoot, false, (*Server).stop},
	"receipt":   {authz.OwnerOnly, true, (*Server).receipt},
}

func (s *Server) ping(ctx context.Context, c *conn, _ wire.Request) error {
	return c.answer(ctx, &wire.Pong{
		Head: wire.Head{Type: "pong"}, Protocol: libctx.Protocol, Agent: s.cfg.Agent, Version: libctx.Version,
	})
}

func (s *Server) send(ctx context.Context, c *conn, r wire.Request) error {
	return s.cfg.Hub.Send(ctx, r.(*wire.Send), c)
}

func (s *Server) tsh(ctx context.Context, c *conn, r wire.Request) error {
	return s.cfg.Hub.Tsh(ctx, r.(*wire.Tsh), c)
}

func (s *Server) resume(ctx context.Context, c *conn, r wire.Request) error {
	return s.cfg.Hub.Resume(ctx, r.(*wire.Resume), c)
}

func (s *Server) cancelRun(ctx context.Context, c *conn, r wire.Request) error {
	run, err := s.cfg.Hub.Cancel(r.(*wire.Cancel))
	if err != nil {
		return err
	}
	return c.answer(ctx, &wire.Accepted{Head: wire.Head{Type: "accepted", Run: run}, Op: "cancel"})
}

// approve answers nothing: the run tells its clients what was answered.
func (s *Server) approve(_ context.Context, c *conn, r wire.Request) error {
	return c.asked.Answer(r.(*wire.Approve))
}

// say answers accepted once the input is durable. The run tells its clients of
// the input, this one too if it follows the run.
func (s *Server) say(ctx context.Context, c *conn, r wire.Request) error {
	in := session.Input{Op: r.Op()}
	var name libctx.Session
	switch r := r.(type) {
	case *wire.Steer:
		name, in.Client, in.Text = r.Session, r.ID, r.Input
	case *wire.FollowUp:
		name, in.Client, in.Text = r.Session, r.ID, r.Input
	case *wire.Finish:
		name, in.Client, in.Text = r.Session, r.ID, r.Input
	}
	run, err := s.cfg.Hub.Say(name, in, c)
	if err != nil {
		return err
	}
	return c.answer(ctx, &wire.Accepted{Head: wire.Head{Type: "accepted", Run: run}, Op: in.Op, ClientID: in.Client})
}

func (s *Server) status(ctx context.Context, c *conn, r wire.Request) error {
	st, err := s.cfg.Hub.Status(r.(*wire.StatusOf).Session)
	if err != nil {
		return err
	}
	st.Head.Type = "status"
	st.Terminals = s.cfg.Terminals.Live(ctx, st.Session)
	st.Agent, st.PID, st.Protocol = s.cfg.Agent, os.Getpid(), libctx.Protocol
	return c.answer(ctx, &st)
}

// receipt answers accepted once the receipt is proven and stored, and the start
// is in the session's history.
func (s *Server) receipt(ctx context.Context, c *conn, r wire.Request) error {
	q := r.(*wire.Receipt)
	start, err := s.cfg.Terminals.Accept(ctx, q.Session, q.Receipt)
	if err != nil {
		return err
	}
	if err := s.cfg.Hub.Note(q.Session, start); err != nil {
		return err
	}
	s.cfg.Log.Info("agent.start", "session", string(q.Session), "supervisor", start.Supervisor, "unit", start.Unit, "pid", start.PID)
	return c.answer(ctx, &wire.Accepted{Head: wire.Head{Type: "accepted"}, Op: "receipt"})
}

// stop answers accepted once it knows what there is to stop, ends every run,
// stops the terminals, answers done, and ends the process. With a session it does
// so there, and the process goes on. What was begun is finished whatever becomes
// of the client and of the server.
func (s *Server) stop(ctx context.Context, c *conn, r wire.Request) error {
	q := r.(*wire.Stop)
	if q.Agent != s.cfg.Agent {
		return errdefs.New(errdefs.Denied, "this socket is agent %s's, not %s's", s.cfg.Agent, q.Agent)
	}
	plan, err := s.cfg.Terminals.Plan(ctx, q.Session)
	if err != nil {
		return err
	}
	err = c.answer(ctx, &wire.Accepted{Head: wire.Head{Type: "accepted"}, Op: "stop", Agent: s.cfg.Agent})
	if err != nil {
		return err
	}
	if q.Session == "" {
		s.cfg.Hub.Drain(run.ErrStopped)
	} else {
		s.cfg.Hub.DrainSession(q.Session, run.ErrStopped)
	}
	done := &wire.Done{
		Head: wire.Head{Type: "done"}, Op: "stop", Agent: s.cfg.Agent, Session: q.Session, Status: "ok",
		Terminals: receipt.Stop(context.WithoutCancel(ctx), plan, s.cfg.Hub.Note),
	}
	for _, t := range done.Terminals {
		s.cfg.Log.Info("agent.stop", "session", string(t.Session), "outcome", t.Outcome, "why", t.Message)
		if t.Outcome == receipt.Failed {
			done.Status = "error"
		}
	}
	if q.Session != "" {
		return c.answer(ctx, done)
	}
	s.cfg.Hub.Shutdown(run.ErrStopped)
	c.answer(ctx, done)
	s.stopping.Do(func() { close(s.stopped) })
	return nil
}
