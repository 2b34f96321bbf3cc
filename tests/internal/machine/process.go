package machine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is what /proc says of one.
type process struct {
	pid, parent, uid int
	numbers          []string // in the host's namespace, and in each below it
	name             string
}

// processes are those of the host, machines' too, without zombies.
func processes() []process {
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	var all []process
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // gone
		}
		var p process
		p.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(line, ":")
			fields := strings.Fields(value)
			if len(fields) == 0 {
				continue
			}
			switch key {
			case "Name":
				p.name = fields[0]
			case "State":
				if fields[0] == "Z" || fields[0] == "X" {
					p.pid = 0
				}
			case "PPid":
				p.parent, _ = strconv.Atoi(fields[0])
			case "Uid":
				p.uid, _ = strconv.Atoi(fields[0])
			case "NSpid":
				p.numbers = fields
			}
		}
		if p.pid != 0 {
			all = append(all, p)
		}
	}
	return all
}
