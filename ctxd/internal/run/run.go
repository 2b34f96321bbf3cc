package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/go-json-experiment/json"

	"cortexfs.org/ctxd/internal/approval"
	"cortexfs.org/ctxd/internal/capsock"
	"cortexfs.org/ctxd/internal/changes"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/wire"
)

// Places is where a run works, checked and resolved before it is recorded.
type Places struct {
	Workspace string // host directory bound at /workspace, canonical
	Cwd       string // inside path
	Hears     bool   // the agent listens while it works: steer, follow_up and finish
	Ground    changes.Ground
}

// Agent is what an agent's files say, as they were read for one request.
type Agent interface {
	// Cwd is the working directory that a request with this one means: "" is
	// the agent's own.
	Cwd(cwd string) string
	// Places resolves the directories of a request, workspace "" meaning the
	// session's last one (last, which may be "" too).
	Places(s libctx.Session, workspace, last, cwd string) (Places, error)
}

// Worker carries runs out: it is the way from a request to sandboxes. Drive and
// Tool commit what they do through the Run and return when everything they
// started is gone; the error, if any, is what ended the run.
type Worker interface {
	// Load reads the agent's files anew. It refuses an agent whose files are
	// refused, and every one as long as nothing can be started for it.
	Load() (Agent, error)
	// Replayable reports whether a call that a dead host left without a result may
	// be executed again, as the agent's files are now.
	Replayable(s libctx.Session, c session.OpenCall) bool
	// Drive carries out a send.
	Drive(ctx context.Context, r *Run) error
	// Tool carries out a tsh operation.
	Tool(ctx context.Context, r *Run) error
}

// Run is one run: what was asked, and the only way its worker may speak of it.
type Run struct {
	ID       libctx.Run
	Session  libctx.Session
	Client   libctx.ClientID
	Op       string // "send" or "tsh"
	Scope    string
	Input    string   // of a send
	Args     []string // of a tsh
	ToolFree bool     // no tool may be called; Deliver may set it
	Places   Places
	// Watch collects what the run changes; its worker sets it.
	Watch *changes.Watch
	// Control is what programs of the run may ask for; its worker sets it, for as
	// long as it works.
	Control *capsock.Capability

	payload string        // digest of what the client asked for
	client  Client        // whose request began the run, and who answers its questions
	asking  chan struct{} // one slot: a question is open
	live    *Live
	gen     int // the opening of the store this run belongs to
	ctx     context.Context
	cancel  context.CancelCauseFunc
	over    chan struct{} // closed when nothing of the run is left

	// Guarded by live.mu.
	held     []session.Record // made, and waiting for what follows them
	recorded bool             // the ledger has records of the run
	inbox    inbox
	question *approval.Slot // nil: none is open

	mu    sync.Mutex
	state State
}

// digest is what makes two requests with one id the same: the operation, its
// input, scope and effective cwd; never the workspace.
func digest(op, input string, args []string, scope, cwd string) (string, error) {
	text, err := json.Marshal([]any{op, input, args, scope, cwd})
	if err != nil {
		return "", errdefs.New(errdefs.Invalid, "request: %w", err)
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// advance moves the run's state and reports the new one.
func (r *Run) advance(e Event) (State, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := next(r.state, e)
	r.state = s
	return s, err
}

// Cancelled reports whether the run was told to end: somebody cancelled it, or its
// host ends.
func (r *Run) Cancelled() bool { return r.ctx.Err() != nil }

// reason is what a checkpoint or an error frame says of an error.
func reason(err error) (errdefs.Kind, string) {
	text, _ := wire.Clip(wire.Clean([]byte(err.Error())), 4096)
	return errdefs.KindOf(err), text
}

// checkpoint is the end of a run whose worker returned err.
func (r *Run) checkpoint(err error) *session.Checkpoint {
	c := &session.Checkpoint{Run: r.ID, Outcome: judge(context.Cause(r.ctx), err)}
	if c.Outcome == session.Interrupted {
		err = context.Cause(r.ctx)
	}
	if c.Outcome != session.Completed && c.Outcome != session.Cancelled {
		c.Code, c.Message = reason(err)
	}
	return c
}

// last is the end of a run whose worker returned err: what was carried into it
// and has no result, what was said into it and is not delivered, its checkpoint.
func (r *Run) last(store ledger, err error) ([]session.Record, error) {
	if r.Op == "tsh" {
		return []session.Record{r.checkpoint(err)}, nil
	}
	carried, failed := store.Carried()
	if failed != nil {
		return nil, failed
	}
	var records []session.Record
	for _, c := range carried {
		records = append(records, c.Unknown(r.ID))
	}
	records = append(records, deliveries(r.ID, r.inbox.waiting)...)
	return append(records, r.checkpoint(err)), nil
}

// Carried lists the calls of a run whose host died that this run, a send, is to
// begin with, because they may be executed again: commit their results. Those
// that have none when the run ends get one that says so.
func (r *Run) Carried() ([]session.OpenCall, error) {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	if err := r.live.owns(r); err != nil {
		return nil, err
	}
	return r.live.store.Carried()
}

// shorten puts a result that says why it could not be kept in the place of the
// one that is held back, and gives up what is held back of changes. It reports
// whether there was either.
func (r *Run) shorten(why error) bool {
	shed := r.shed()
	for i, held := range r.held {
		fact, ok := held.(*session.Fact)
		if !ok {
			continue
		}
		if long, ok := fact.Frame.(*wire.ToolResult); ok {
			_, text := reason(why)
			r.held[i] = &session.Fact{Run: r.ID, Frame: &wire.ToolResult{
				Head: wire.Head{Type: "tool_result"}, Call: long.Call, Name: long.Name, Status: "error",
				Content: "the result could not be kept: " + text, ExitCode: long.ExitCode, DurationMS: long.DurationMS,
			}}
			return true
		}
	}
	return shed
}

// begin is the batch that makes the run durable, before anything is done.
func (r *Run) begin(entry, parent string) []session.Record {
	start := &session.Fact{Run: r.ID, Payload: r.payload, Frame: &wire.Start{
		Head:    wire.Head{Type: "start"},
		Session: r.Session, Agent: r.live.hub.cfg.Agent, ClientID: r.Client,
		Op: r.Op, Scope: r.Scope, Cwd: r.Places.Cwd, Workspace: r.Places.Workspace,
	}}
	if r.Op == "tsh" {
		return []session.Record{start}
	}
	return []session.Record{
		&session.Entry{
			ID: entry, Parent: parent, Run: r.ID, Kind: "message", Role: "user",
			Content: []wire.Part{wire.Text(r.Input)}, ClientID: r.Client,
		},
		&session.Head{ID: entry},
		start,
	}
}

// Loaded is the loaded tools of a session that lives in memory, nil for one that
// has a directory to keep them in.
func (r *Run) Loaded() *toolshell.Memory { return r.live.loaded }

// Append commits one message of a send at the tip of the session's branch; its
// frames reach the clients when it is durable. A storage error ends the run:
// return it from Drive.
func (r *Run) Append(role string, content ...wire.Part) error {
	return r.live.commit(r, func(l ledger) []session.Record {
		return []session.Record{&session.Entry{
			ID: l.NextEntryID(), Parent: l.Tip(), Run: r.ID, Kind: "message", Role: role, Content: content,
		}}
	})
}

// Record commits durable frames that no message implies: decisions, and the
// call and result of a tsh operation.
//
// A tsh operation is two batches. What was asked waits for the decision about it,
// before which nothing starts; the result waits for the end of the run, since
// nothing comes between. An error about them is then that of the decision, or
// the outcome of the run.
func (r *Run) Record(frames ...wire.Frame) error {
	records := make([]session.Record, len(frames))
	wait := r.Op == "tsh"
	for i, f := range frames {
		records[i] = &session.Fact{Run: r.ID, Frame: f}
		wait = wait && (f.Header().Type == "tool_call" || f.Header().Type == "tool_result")
	}
	if wait {
		return r.hold(records)
	}
	return r.live.commit(r, func(ledger) []session.Record { return records })
}

// hold keeps records for the batch of those that follow them.
func (r *Run) hold(records []session.Record) error {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	if err := r.live.owns(r); err != nil {
		return err
	}
	r.held = append(r.held, records...)
	return nil
}

// Emit shows clients a provisional frame; it is stored nowhere. After the run
// was cancelled it shows nothing.
func (r *Run) Emit(f wire.Frame) {
	if r.Cancelled() {
		return
	}
	f.Header().Run = r.ID
	line, err := wire.MarshalFrame(f)
	if err != nil {
		return // a provisional frame over the limit: the committed one follows, clipped
	}
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	r.live.push(session.Event{Run: r.ID, Line: line})
}

// History is the newest part of the session's conversation, up to about max
// bytes, this run's own messages included.
func (r *Run) History(max int) ([]session.Entry, error) {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	if err := r.live.owns(r); err != nil {
		return nil, err
	}
	return r.live.store.Conversation(max)
}
