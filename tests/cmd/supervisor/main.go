// Supervisor lets tests use libctx/supervise from where they can not be
// themselves, as the users of a machine:
//
//	supervisor start SUPERVISOR SESSION ARGV… prints the instance
//	supervisor find|list SUPERVISOR [SESSION] prints the instance, or each
//	supervisor prove                          reads an instance from standard input
//	supervisor stop SUPERVISOR                the same
//	supervisor linger                         prints whether the user lingers
//
// Sessions are those of the agent "a" in the user's own tree. An error is one
// line "KIND: text", with "stale " in front where it is one, and the exit code
// of its kind.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/supervise"
)

func main() {
	err := run(os.Args[1], os.Args[2:])
	if err == nil {
		return
	}
	mark := ""
	if errors.Is(err, supervise.ErrStale) {
		mark = "stale "
	}
	fmt.Printf("%s%s: %v\n", mark, errdefs.KindOf(err), err)
	os.Exit(errdefs.KindOf(err).Exit())
}

func run(op string, args []string) error {
	ctx := context.Background()
	if op == "linger" {
		fmt.Println(supervise.Linger(uint32(os.Getuid())))
		return nil
	}
	var i supervise.Instance
	if op == "prove" || op == "stop" {
		if err := json.NewDecoder(os.Stdin).Decode(&i); err != nil {
			return err
		}
	}
	if op == "prove" {
		return supervise.Prove(ctx, i)
	}
	home := os.Getenv("HOME")
	layout := paths.New(paths.Env{RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"), Home: home, UID: os.Getuid()}, home+"/.local/share/cortexfs")
	s, err := supervise.New(ctx, args[0], layout, uint32(os.Getuid()))
	if err != nil {
		return err
	}
	var unit string
	if len(args) > 1 {
		unit = supervise.Unit(layout, "a", libctx.Session(args[1]))
	}
	switch op {
	case "start":
		i, err := s.Start(ctx, supervise.Spec{
			Unit: unit, Description: "a test's terminal", Argv: args[2:], Env: []string{"HOME=" + home, "MARK=a b"},
			Log: home + "/log-" + strconv.Itoa(os.Getpid()),
		})
		return show(i, err)
	case "find":
		i, err := s.Find(ctx, unit)
		return show(i, err)
	case "list":
		all, err := s.List(ctx)
		for _, i := range all {
			show(i, nil)
		}
		return err
	}
	return s.Stop(ctx, i)
}

func show(i supervise.Instance, err error) error {
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(i)
}
