package procid

import (
	"os"
	"strings"

	"cortexfs.org/libctx/errdefs"
)

// Boot is the kernel's id of this boot, 36 characters: with it an ID names one
// process for ever.
func Boot() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", errdefs.New(errdefs.IO, "boot id: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
