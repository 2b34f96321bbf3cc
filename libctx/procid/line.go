package procid

import (
	"strconv"
	"strings"
)

// Line is the text by which the holder of a terminal's lock names itself in it: pid,
// start time and boot id, and LF (docs/reference/supervisors.md, "Direct").
func (id ID) Line(boot string) string {
	return strconv.Itoa(id.PID) + " " + strconv.FormatUint(id.Start, 10) + " " + boot + "\n"
}

// ParseLine reads what Line wrote, and reports false for anything else.
func ParseLine(line string) (id ID, boot string, ok bool) {
	line, ok = strings.CutSuffix(line, "\n")
	f := strings.Split(line, " ")
	if !ok || len(f) != 3 || f[2] == "" || strings.ContainsAny(line, "\n\x00") {
		return ID{}, "", false
	}
	pid, err1 := strconv.Atoi(f[0])
	start, err2 := strconv.ParseUint(f[1], 10, 64)
	if err1 != nil || err2 != nil || pid <= 0 || strconv.Itoa(pid) != f[0] || strconv.FormatUint(start, 10) != f[1] {
		return ID{}, "", false
	}
	return ID{PID: pid, Start: start}, f[2], true
}
