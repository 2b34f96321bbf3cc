package sandbox

import (
	"fmt"
	"strconv"
	"strings"

	"cortexfs.org/libctx/paths"
)

// nobody is how the kernel shows users and groups that the sandbox does not
// know.
const nobody = 65534

// Accounts are the files that tell programs inside about users, groups and
// names, by inside path. They know the agent's user and nobody else. With the
// host's network the host names are the host's own, so /etc/hosts is left out.
func Accounts(s Spec) map[string]string {
	uid, gid := s.Identity.UID, s.Identity.GID
	name := s.UserName
	if !plainName(name) {
		name = strconv.FormatUint(uint64(uid), 10)
	}
	passwd := fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\n", name, uid, gid, paths.InHome)
	if uid != nobody {
		passwd += fmt.Sprintf("nobody:x:%d:%d::/nonexistent:/usr/sbin/nologin\n", nobody, nobody)
	}
	group := fmt.Sprintf("%s:x:%d:\n", name, gid)
	if gid != nobody {
		group += fmt.Sprintf("nogroup:x:%d:\n", nobody)
	}
	files := map[string]string{
		"/etc/passwd":        passwd,
		"/etc/group":         group,
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	}
	if s.Network {
		files["/etc/nsswitch.conf"] = "passwd: files\ngroup: files\nhosts: files dns\n"
	} else {
		files["/etc/hosts"] = "127.0.0.1 localhost " + HostName + "\n::1 localhost\n"
	}
	return files
}

// Copied are the files of the host's /etc that programs inside get a copy of,
// as far as they exist and everybody may read them.
func Copied(s Spec) []string {
	files := []string{
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ca-certificates.conf",
		"/etc/localtime", "/etc/timezone", "/etc/mime.types",
	}
	if s.Network {
		files = append(files, "/etc/resolv.conf", "/etc/hosts")
	}
	return files
}

// plainName reports whether a name can stand in a line of /etc/passwd.
func plainName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return r == ':' || r == ',' || r <= ' ' || r == 0x7f || r == '\uFFFD'
	})
}
