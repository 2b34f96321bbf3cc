package session

import (
	"time"

	"cortexfs.org/libctx"
)

// Info describes a session.
type Info struct {
	Session          libctx.Session
	State            string     // idle, active, done, error or cancelled
	Active           libctx.Run // the open driven run, "" if none
	Workspace        string     // host directory of the last run that had one
	Cwd              string     // inside path of the last driven run
	Created, Updated time.Time
	Turns            int64 // driven runs
	Tokens           Tokens
	Cost             int64  // picodollars
	Records, Bytes   int64  // of the ledger
	Damage           string // why the ledger can not be written, "" if it can
}

// Event is a durable frame.
type Event struct {
	ID   libctx.Event
	Run  libctx.Run
	Line []byte
}

// SettledCall is a call that Open gave its indeterminate result.
type SettledCall struct {
	Run  libctx.Run
	Call libctx.Call
	Name libctx.Tool
}

// Session is a session open for writing.
type Session struct{}

func (s *Session) Commit(records ...Record) ([]Event, error) { return nil, errNot }
func (s *Session) Room() error                               { return errNot }
func (s *Session) Settled() []SettledCall                    { return nil }
func (s *Session) Client(id libctx.ClientID) (libctx.Run, string, bool, error) {
	return "", "", false, errNot
}
func (s *Session) FindEvent(after libctx.Event) (int64, error)               { return 0, errNot }
func (s *Session) FindRun(run libctx.Run) (int64, error)                     { return 0, errNot }
func (s *Session) ReadEvents(offset int64, max int) ([][]byte, int64, error) { return nil, 0, errNot }
func (s *Session) EventsEnd() int64                                          { return 0 }
func (s *Session) Conversation(max int) ([]Entry, error)                     { return nil, errNot }
func (s *Session) Tip() string                                               { return "" }
func (s *Session) NextEntryID() string                                       { return "" }
func (s *Session) Info() Info                                                { return Info{} }
func (s *Session) Close() error                                              { return nil }

// Reader reads a session without changing it.
type Reader struct{}

// Line is one line of the ledger as a reader sees it: Record is nil when Err
// says why.
type Line struct {
	N      int64 // from 1
	Text   []byte
	Record Record
	Err    error
}

// Next returns the next line, io.EOF at the end.
func (r *Reader) Next() (Line, error) { return Line{}, errNot }

// Branch returns the active branch, oldest first; an item with Err reports damage.
func (r *Reader) Branch(yield func(Entry, error) bool) {}

// Latest is the latest assistant text.
func (r *Reader) Latest() (string, error) { return "", errNot }

func (r *Reader) Info() Info   { return Info{} }
func (r *Reader) Close() error { return nil }
