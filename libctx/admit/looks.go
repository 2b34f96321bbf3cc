package admit

import "github.com/go-json-experiment/json"

// OnlyLooks reports whether a call runs a command that is known to change nothing,
// whatever policy is in force.
func OnlyLooks(t Tool, c Call) bool {
	return (t.Name == bash || t.Name == shellExec) && knownSafe(t, c)
}

// Changes is the path that a call of one of the file tools of the suite changes, as
// it was given. Of other tools nobody knows what they change.
func Changes(t Tool, c Call) (p string, ok bool) {
	if t.Name != "fs.write" && t.Name != "fs.replace" || t.Path != builtins+string(t.Name) {
		return "", false
	}
	object, err := objectOf(t, c.Arguments)
	var args struct {
		Path string `json:"path"`
	}
	if err != nil || json.Unmarshal(object, &args) != nil {
		return "", false
	}
	return args.Path, true
}
