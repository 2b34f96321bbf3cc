// Package doctor looks at everything an agent needs to run and says what is
// wrong and what helps. It changes nothing.
package doctor

import (
	"context"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx/errdefs"
)

// The verdicts of a check.
const (
	ok     = "ok"
	warn   = "warn" // works, and something should be known
	broken = "broken"
)

// Finding is the outcome of one check.
type Finding struct {
	Check  string `json:"check"`
	State  string `json:"state"` // "ok", "warn" or "broken"
	Detail string `json:"detail"`
	Remedy string `json:"remedy"` // what to do, "" if nothing
}

// ErrBroken is the error of an examination that found something broken.
var ErrBroken error = errdefs.New(errdefs.IO, "something is broken")

// Run makes every check and prints its outcome. If one is broken the error is
// ErrBroken.
func Run(ctx context.Context, from *caller.Caller) error {
	var all []Finding
	for _, check := range []func(context.Context, *caller.Caller) []Finding{
		checkTree, checkTools, checkAgents, checkRuntime, checkPrograms, checkSandbox, checkActivator, checkMachine, checkUnits, checkOwners, checkLinger, checkDisk, checkClock, checkCgroup,
	} {
		all = append(all, check(ctx, from)...)
	}
	var rows []output.Row
	bad := false
	for _, f := range all {
		bad = bad || f.State == broken
		rows = append(rows, output.Row{Cells: []string{f.Check, f.State, f.Detail, f.Remedy}, Object: f})
	}
	if err := from.Table([]string{"CHECK", "STATE", "DETAIL", "REMEDY"}, rows); err != nil {
		return err
	}
	if bad {
		return ErrBroken
	}
	return nil
}

func good(check, detail string) []Finding { return []Finding{{check, ok, detail, ""}} }

func bad(check string, err error, remedy string) []Finding {
	if hint := errdefs.HintOf(err); remedy == "" {
		remedy = hint
	}
	return []Finding{{check, broken, err.Error(), remedy}}
}
