package asuser

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx/errdefs"
)

// The account files. Package os/user is not used: for the process's own uid it
// may believe $USER, and an identity must not come from the environment.
const (
	passwdFile = "/etc/passwd"
	groupFile  = "/etc/group"
)

// Lookup finds the groups and the name of a uid in the account files. A uid
// without an account has the group of the same number, no others, and no name.
// Accounts that are in a directory service alone count as absent.
func Lookup(uid uint32) (Identity, string, error) {
	id, name := Identity{UID: uid, GID: uid}, ""
	err := eachLine(passwdFile, func(f []string) bool { // name:password:uid:gid:…
		if len(f) < 4 || !is(f[2], uid) {
			return true
		}
		gid, ok := number(f[3])
		if ok {
			id.GID, name = gid, f[0]
		}
		return !ok
	})
	if err == nil && name != "" {
		id.Groups = []uint32{id.GID}
		err = eachLine(groupFile, func(f []string) bool { // name:password:gid:members
			if len(f) < 4 || !slices.Contains(strings.Split(f[3], ","), name) {
				return true
			}
			if gid, ok := number(f[2]); ok && !slices.Contains(id.Groups, gid) {
				id.Groups = append(id.Groups, gid)
			}
			return true
		})
	}
	if err != nil {
		return Identity{}, "", errdefs.New(errdefs.IO, "look up uid %d: %w", uid, err)
	}
	return id, name, nil
}

// Named is the identity of a login name, or of a uid in digits, which need not have
// an account. A name without an account is errdefs.NotFound.
func Named(user string) (Identity, error) {
	if uid, ok := number(user); ok {
		id, _, err := Lookup(uid)
		return id, err
	}
	var uid uint32
	found := false
	err := eachLine(passwdFile, func(f []string) bool { // name:password:uid:gid:…
		if len(f) >= 4 && f[0] == user {
			uid, found = number(f[2])
		}
		return !found
	})
	if err != nil {
		return Identity{}, errdefs.New(errdefs.IO, "look up user %q: %w", user, err)
	}
	if !found {
		return Identity{}, errdefs.New(errdefs.NotFound, "there is no user %q", user)
	}
	id, _, err := Lookup(uid)
	return id, err
}

// eachLine gives the colon-separated fields of each line of a file to fn until
// it returns false. A file that is not there has no lines.
func eachLine(file string, fn func([]string) bool) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return scan(f, fn)
}

// scan is eachLine for a text. Lines of compatibility entries (+ and -) and
// comments are passed over, as in the C library.
func scan(r io.Reader, fn func([]string) bool) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // a group of many members is one long line
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.ContainsRune("#+-", rune(line[0])) {
			continue
		}
		if !fn(strings.Split(line, ":")) {
			return nil
		}
	}
	return lines.Err()
}

func is(s string, n uint32) bool {
	m, ok := number(s)
	return ok && m == n
}

func number(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err == nil && uint32(n) != noID
}
