// Package entry is the first step inside every sandbox.
package entry

// Main is the program: args are the words behind "ctxtool entry". It returns
// only if the payload could not be started.
func Main(args []string) int { return 126 }
