package runs

import (
	"context"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/client"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// Word is a way to say something into a run.
type Word struct {
	silent  string // what is said where the caller says nothing; "": input is needed
	request func(id libctx.ClientID, s libctx.Session, text string) wire.Request
}

// The ways there are: before the model is asked the next time, where the run
// would end, and so that it ends without more tools.
var (
	Steer = Word{request: func(id libctx.ClientID, s libctx.Session, text string) wire.Request {
		return &wire.Steer{ID: id, Session: s, Input: text}
	}}
	FollowUp = Word{request: func(id libctx.ClientID, s libctx.Session, text string) wire.Request {
		return &wire.FollowUp{ID: id, Session: s, Input: text}
	}}
	Finish = Word{
		silent: "Come to an end now: answer with what you have, without any more tools.",
		request: func(id libctx.ClientID, s libctx.Session, text string) wire.Request {
			return &wire.Finish{ID: id, Session: s, Input: text}
		},
	}
)

// Speak says something into the active run of a session, and returns when the
// agent has it. Words are as those of Send. Without an active run the error is
// errdefs.NotFound, and nothing is brought up to find that out.
func Speak(ctx context.Context, from *caller.Caller, a libctx.Agent, how Word, words []string, session, id string) error {
	text := how.silent
	if text == "" || len(words) > 0 {
		var err error
		if text, err = inputText(from, words); err != nil {
			return err
		}
	}
	name, err := from.Session(a, session)
	if err != nil {
		return err
	}
	if id == "" {
		id = string(libctx.NewRun())
	}
	said, err := libctx.ParseClientID(id)
	if err != nil {
		return err
	}
	conn, err := client.Dialer{Layout: from.Layout}.Dial(ctx, a)
	if errdefs.Is(err, errdefs.Unavailable) {
		return idle(a, name) // nothing listens, so nothing runs
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	r := how.request(said, name, text)
	_, f, err := conn.Ask(r)
	switch {
	case errdefs.Is(err, errdefs.NotFound):
		return idle(a, name)
	case errdefs.Is(err, errdefs.Interrupted):
		return errdefs.New(errdefs.Interrupted, "%w before it said whether it accepted", err).
			WithHint("the same again with --id %s is said at most once", said)
	case err != nil:
		return err
	}
	got, ok := f.(*wire.Accepted)
	if !ok || got.Op != r.Op() || got.ClientID != "" && got.ClientID != said {
		return errdefs.New(errdefs.Protocol, "agent %s: answered %s with %s", a, r.Op(), f.Header().Type)
	}
	if got.Run != "" {
		from.Note("accepted by run " + string(got.Run))
	} else {
		from.Note("accepted")
	}
	return nil
}

func idle(a libctx.Agent, s libctx.Session) error {
	return errdefs.New(errdefs.NotFound, "agent %s: session %s has no active run", a, s).
		WithHint("start one: ctx agent send --session %s %s INPUT", s, a)
}
