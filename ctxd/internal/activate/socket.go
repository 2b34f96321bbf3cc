package activate

import (
	"cortexfs.org/libctx/unixsock"
)

// Socket is one listening socket that is held, and the server that is started
// for it with the socket as descriptor 3 and LISTEN_FDS set.
type Socket struct {
	Name    string                             // whose it is, for the log
	Bind    func() (*unixsock.Listener, error) // makes it
	Unbound func()                             // called when it is no longer held; may be nil
	Command []string                           // argv of the server, argv[0] a path
	Env     []string                           // of the server
	Refusal func(why error) (line []byte)      // what clients are told when no server comes
}
