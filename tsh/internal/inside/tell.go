package inside

import (
	"bytes"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// Terminal is the way to tell the terminal what was decided about a command, for
// its record (docs/reference/terminal.md). The zero value tells nobody.
type Terminal struct{ fd int }

// told is the descriptor that ctxterm gives the tool shell for it.
const told = 3

// Told finds the way, if there is one, and keeps it from everything this process
// starts. It is called before anything else opens a descriptor.
func Told() Terminal {
	kind, err := unix.GetsockoptInt(told, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return Terminal{}
	}
	unix.CloseOnExec(told)
	return Terminal{told}
}

// decision is what the record keeps of one.
type decision struct {
	Name    libctx.Tool `json:"name"`
	Allowed bool        `json:"allowed"`
	Effect  string      `json:"effect,omitzero"`
	Code    string      `json:"code,omitzero"`
	Reason  string      `json:"reason,omitzero"`
}

// maxReason bounds a reason in the record, in bytes.
const maxReason = 1 << 10

// tell tells what was decided. That nobody takes it is no reason not to go on.
func (t Terminal) tell(name libctx.Tool, allowed bool, d admit.Decision) {
	if t.fd == 0 {
		return
	}
	say := decision{Name: name, Allowed: allowed}
	if allowed {
		say.Effect = string(d.Effect)
	} else {
		say.Code = string(d.Code)
		say.Reason, _ = wire.Clip(d.Reason, maxReason)
	}
	if text, err := wire.Marshal(say); err == nil {
		_ = unix.Send(t.fd, bytes.TrimSpace(text), unix.MSG_NOSIGNAL)
	}
}
