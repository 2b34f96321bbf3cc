package units

import (
	"errors"
	"io/fs"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
)

// Files is where the machine's administrator, and ctxd admin, put unit files.
const Files = "/etc/systemd/system"

// dropIn is the file that opens the network to one agent's server; what else is in
// the directory is the administrator's.
const dropIn = "cortexfs-network.conf"

// network is what it says. A sandbox gets the address families of the service it
// is started by, and of no other process.
const network = `# Written by ctxd admin: the policy of this agent allows network:default connect.
[Service]
RestrictAddressFamilies=AF_INET AF_INET6
`

// SetNetwork opens the network to the server of an agent, or closes it, by a
// drop-in of its unit below dir. It reports whether that changed anything; if so,
// the manager has to read its files anew.
func SetNetwork(dir string, a libctx.Agent, open bool) (changed bool, err error) {
	service, err := Service(a)
	if err != nil {
		return false, err
	}
	top, err := atomicfile.OpenDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && !open {
			return false, nil
		}
		return false, errdefs.New(errdefs.KindOf(err), "drop-in of %s: %w", service, err)
	}
	defer top.Close()
	if !open {
		err := top.Remove(service + ".d/" + dropIn)
		if errdefs.Is(err, errdefs.NotFound) {
			return false, nil
		}
		_ = top.Remove(service + ".d") // unless there is something of the administrator's in it
		return err == nil, err
	}
	sub, err := top.MkdirAll(service+".d", 0o755)
	if err != nil {
		return false, err
	}
	defer sub.Close()
	if text, err := sub.ReadFile(dropIn, int64(len(network))); err == nil && string(text) == network {
		return false, nil
	}
	return true, sub.Replace(dropIn, []byte(network), 0o644)
}
