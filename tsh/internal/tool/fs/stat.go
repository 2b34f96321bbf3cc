package fs

import (
	"context"
	"fmt"
	"time"

	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/object"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// Stat is fs.stat: facts about one object of any kind, which is not opened. A
// link is described, not followed.
var Stat = tool.Tool{
	Name: "fs.stat",
	Run:  stat,
}

func stat(_ context.Context, args jsontext.Value, out *tool.Output) error {
	a := struct {
		Path string `json:"path"`
	}{}
	if err := tool.Decode(args, &a); err != nil {
		return err
	}
	p, err := object.Plain(a.Path)
	if err != nil {
		return err
	}
	fd, st, err := object.Locate(p)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	fmt.Fprintf(out, "path: %s\nkind: %s\nsize: %d\nmode: %s\nuid: %d\ngid: %d\nlinks: %d\nmodified: %s\nchanged: %s\n",
		object.Show(p), object.Kind(st.Mode), st.Size, mode(st), st.Uid, st.Gid, st.Nlink, when(st.Mtim), when(st.Ctim))
	switch object.Kind(st.Mode) {
	case "link":
		target := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(fd, "", target)
		if err != nil { // of /proc, for example: the rest is right all the same
			out.Notef("the target of %s can not be read: %v", object.Show(p), err)
			return nil
		}
		fmt.Fprintf(out, "target: %s\n", object.Show(string(target[:n])))
	case "char", "block":
		fmt.Fprintf(out, "device: %d:%d\n", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	}
	return nil
}

// mode is the permission bits in octal, with set-id and sticky bits.
func mode(st unix.Stat_t) string { return fmt.Sprintf("%04o", st.Mode&0o7777) }

func when(t unix.Timespec) string {
	return time.Unix(t.Unix()).UTC().Format(time.RFC3339)
}
