// Package pack makes packages of a stage, each as its description says, a file
// such as packaging/cortexfs.yaml, in the terms of nfpm: for Debian, for distributions with rpm,
// and for Arch Linux.
package pack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/arch" // they say what they are
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// Formats are the kinds of packages that are made.
var Formats = []string{"deb", "rpm", "archlinux"}

// Release is what all packages have in common.
type Release struct {
	Version string // "0.1.0", or "0.1.0-g0123" before it
	Arch    string // as Go calls it
	When    time.Time
}

// parts are the version and what makes it an earlier one.
func (r Release) parts() (version, before string) {
	version, before, _ = strings.Cut(r.Version, "-")
	return version, strings.ReplaceAll(before, "-", ".")
}

// Full is the version with its release, as the packages of a format name it.
func (r Release) Full(format string) string {
	version, before := r.parts()
	if before != "" && format != "archlinux" {
		version += "~"
	}
	return version + before + "-1"
}

// Make makes the package that a file describes, in a format, into a folder, and
// returns the name of its file. The current directory is the stage.
func Make(description, format, into string, r Release) (string, error) {
	config, err := nfpm.ParseFileWithEnvMapping(description, func(name string) string {
		if name == "VERSION" {
			return r.Full(format)
		}
		return ""
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", description, err)
	}
	info, err := config.Get(format)
	if err != nil {
		return "", fmt.Errorf("%s: %w", description, err)
	}
	info.Arch, info.Platform = r.Arch, "linux"
	if config.Arch == "all" {
		info.Arch = "all"
	}
	info.VersionSchema = "none"
	info.Version, info.Prerelease = r.parts()
	info.Release = "1"
	info.MTime = r.When
	info.Maintainer = "CortexFS maintainers <maintainers@cortexfs.org>"
	info.Homepage = "https://cortexfs.org"
	info.License = "Apache-2.0"
	info.Section, info.Priority = "admin", "optional"
	info.ArchLinux.Packager = info.Maintainer
	suit(info, format)
	info.RPM.BuildHost = "cortexfs.org" // and not the name of this machine
	info.RPM.Group = "Applications/System"
	info.RPM.Compression = "zstd"
	info.Deb.Compression = "gzip" // xz takes minutes, for a tenth
	info = nfpm.WithDefaults(info)
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	name := packager.ConventionalFileName(info)
	f, err := os.Create(filepath.Join(into, name))
	if err != nil {
		return "", err
	}
	if err := packager.Package(info, f); err != nil {
		f.Close()
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return name, f.Close()
}

// suit says what a package is as its format has it: the description is Debian's,
// one line, then paragraphs with a dot between them.
func suit(info *nfpm.Info, format string) {
	line, rest, _ := strings.Cut(info.Description, "\n")
	switch format {
	case "rpm": // which has the line as its summary
		info.Description = strings.ReplaceAll(rest, "\n.\n", "\n\n")
	case "archlinux":
		info.Description = line
		info.Version, info.Prerelease = info.Version+info.Prerelease, "" // else one of two places has it
	}
}
