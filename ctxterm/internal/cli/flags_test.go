package cli

import (
	"os"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--foo":           "ctxterm: unknown flag --foo\nhint: ",
		"-foo=secret x":   "ctxterm: unknown flag --foo\nhint: ",
		"--listen":        "ctxterm: flag --listen: needs a value\nhint: ",
		"--clipboard=yes": "ctxterm: flag --clipboard: is on or off and takes no value\nhint: ",
		"--size":          "ctxterm: flag --size: needs a value\nhint: ",
	} {
		errs, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		code := Main(append([]string{"ctxterm"}, strings.Fields(args)...), Streams{In: os.Stdin, Out: os.Stdout, Err: errs})
		said, err := os.ReadFile(errs.Name())
		if err != nil || code != 2 || !strings.HasPrefix(string(said), want) {
			t.Errorf("%s: exit %d, %q, %v", args, code, said, err)
		}
	}
}
