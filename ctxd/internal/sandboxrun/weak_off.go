//go:build !faults

package sandboxrun

import "cortexfs.org/libctx/sandbox"

// What the recipe makes is what is launched; only a build with faults can leave
// parts of it out.

func weakRequest(r sandbox.Request) sandbox.Request { return r }
func weakOptions(options []string) []string         { return options }
func weakCommand(words []string) []string           { return words }
func weakEnviron() []string                         { return []string{} }
