// Command packages makes the packages of the suite from built programs and their
// manual pages.
//
//	packages -programs bin -reference dist/reference -modules $(go env GOMODCACHE) \
//		-into dist -version 0.1.0 -epoch 1764547200 -arch amd64
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cortexfs.org/packaging/internal/license"
	"cortexfs.org/packaging/internal/pack"
	"cortexfs.org/packaging/internal/stage"
)

// programs are what each package has; the last one is there to want the others.
var programs = map[string][]string{
	"cortexfs-ctx":     {"ctx"},
	"cortexfs-ctxd":    {"ctxd", "ctxmodel"},
	"cortexfs-ctxterm": {"ctxterm"},
	"cortexfs-tsh":     {"tsh", "ctxtool"},
	"cortexfs":         {},
}

func main() {
	var from stage.From
	var r pack.Release
	flag.StringVar(&from.Top, "top", ".", "the top `DIR` of the sources")
	flag.StringVar(&from.Programs, "programs", "bin", "`DIR` of the built programs")
	flag.StringVar(&from.Reference, "reference", "dist/reference", "`DIR` of manual pages and completions")
	into := flag.String("into", "dist", "`DIR` to write to")
	modules := flag.String("modules", "", "`DIR` of modules' sources, GOMODCACHE")
	epoch := flag.Int64("epoch", 0, "the `TIME` of everything, in seconds since 1970")
	flag.StringVar(&r.Version, "version", "", "the `VERSION`, such as 0.1.0")
	flag.StringVar(&r.Arch, "arch", "amd64", "the `ARCHITECTURE` of the programs, as Go calls it")
	formats := flag.String("formats", strings.Join(pack.Formats, " "), "the `KINDS` of packages")
	flag.Parse()
	if flag.NArg() != 0 || r.Version == "" || *modules == "" || *epoch == 0 {
		flag.Usage()
		os.Exit(2)
	}
	r.When = time.Unix(*epoch, 0).UTC()
	if err := packages(from, *into, *modules, strings.Fields(*formats), r); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func packages(from stage.From, into, modules string, formats []string, r pack.Release) error {
	top, err := filepath.Abs(from.Top)
	if err != nil {
		return err
	}
	if into, err = filepath.Abs(into); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cortexfs-stage-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, binaries := range programs {
		var paths []string
		for _, b := range binaries {
			paths = append(paths, filepath.Join(from.Programs, b))
		}
		text, err := license.Copyright(paths, modules)
		if err != nil {
			return err
		}
		changes := fmt.Sprintf("%s (%s) unstable; urgency=medium\n\n  * Release %s.\n\n -- CortexFS maintainers <maintainers@cortexfs.org>  %s\n",
			name, r.Full("deb"), r.Version, r.When.Format(time.RFC1123Z))
		for file, text := range map[string][]byte{"copyright": []byte(text), "changelog.Debian.gz": stage.Gzip([]byte(changes))} {
			if err := stage.Write(filepath.Join(dir, name, file), text, 0o644); err != nil {
				return err
			}
		}
	}
	if err := stage.Fill(dir, from, r.When); err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for name := range programs {
		for _, format := range formats {
			file, err := pack.Make(filepath.Join(top, "packaging", name+".yaml"), format, into, r)
			if err != nil {
				return err
			}
			fmt.Println(filepath.Join(into, file))
		}
	}
	return nil
}
