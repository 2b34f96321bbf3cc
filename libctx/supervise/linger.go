package supervise

import (
	"os"
	"path/filepath"

	"cortexfs.org/libctx/asuser"
)

const lingerDir = "/var/lib/systemd/linger"

// Linger reports whether systemd keeps the user's manager when nobody is logged
// in, and with it the user's terminals. A user whose account this machine has
// not in its files counts as not.
func Linger(uid uint32) bool {
	_, name, err := asuser.Lookup(uid)
	if err != nil || name == "" {
		return false
	}
	_, err = os.Lstat(filepath.Join(lingerDir, name))
	return err == nil
}
