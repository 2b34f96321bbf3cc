// Intruder tries what it must not be able to, and says what came of it: a tool
// and an executable agent that attacks from inside of its sandbox, and another
// user of the machine who attacks from outside.
//
// Each try is a line: "did WHAT" if it succeeded, else "no WHAT: ERRNO". As an
// executable agent (without words, CTX_STEP is set) it gives its input to /bin/sh and answers
// with what that printed, whatever its status; lines that begin with "frame " it
// writes itself, as frames of its own; a line "--" ends what one step does. Else its words are a verb and what that
// needs; see verbs.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// verbs are the tries, by the first word.
var verbs = map[string]func(args []string){
	"abstract":   func(a []string) { abstract(a[0]) },
	"crowd":      func(a []string) { crowd(a[0], number(a[1])) },
	"exchange":   func(a []string) { exchange(a[0], a[1]) },
	"fds":        func([]string) { descriptors() },
	"fill":       func(a []string) { fill(a[0], number(a[1])) },
	"fork":       func(a []string) { fork(number(a[0]), a[1]) },
	"grant":      func(a []string) { grant(a[0], a[1]) },
	"input":      func([]string) { pushInput() },
	"keys":       func([]string) { keys() },
	"loopback":   func(a []string) { loopback(a[0]) },
	"mounts":     func([]string) { mounts() },
	"namespaces": func([]string) { namespaces() },
	"open":       func(a []string) { open(a) },
	"outside":    func([]string) { outside() },
	"pass":       func(a []string) { pass(a[0], a[1]) },
	"process":    func(a []string) { process(number(a[0])) },
	"say":        func(a []string) { say(a[0], a[1:]) },
	"write":      func(a []string) { write(a) },
}

func main() {
	if len(os.Args) == 1 && os.Getenv("CTX_STEP") != "" {
		agent()
		return
	}
	if len(os.Args) < 2 || verbs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "intruder: no such verb")
		os.Exit(64)
	}
	verbs[os.Args[1]](os.Args[2:])
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "intruder:", err)
		os.Exit(64)
	}
	return n
}

var speaking sync.Mutex

// report says what came of a try.
func report(what string, err error) {
	speaking.Lock()
	defer speaking.Unlock()
	if err == nil {
		fmt.Println("did " + what)
		return
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		fmt.Println("no " + what + ": " + unix.ErrnoName(errno))
		return
	}
	fmt.Println("no " + what + ": " + err.Error())
}
