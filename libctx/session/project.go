package session

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"path"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
)

// projected is what the small files beside the ledger were last given, so that
// only what changed is written. They are for people and scripts; the ledger can
// make them all again, so they are replaced without syncs and a failure to
// write one fails nothing.
type projected struct {
	word, updated, cwd, meta string
	latest                   uint32
	created                  bool
}

// project brings the projections up to date at the end of any run, and at the
// first start in a new session. At later starts only the state word is written:
// the others would keep the run waiting.
func (s *Session) project(ended bool) {
	st, was := s.st, s.shown
	now := was
	_ = s.place.in(s.place.sessions(), func(d *atomicfile.Dir) error {
		put := func(name, text string) bool {
			return d.ReplaceLazy(path.Join(string(s.name), name), []byte(text), filePerm) == nil
		}
		line := func(name, text string, shown *string) {
			if *shown != text && put(name, text+"\n") {
				*shown = text
			}
		}
		line("state", st.word, &now.word)
		if !ended && was.created {
			return nil
		}
		line("updated_at", unixText(st.updated), &now.updated)
		if !was.created {
			now.created = put("created_at", unixText(st.created)+"\n")
		}
		if meta := s.meta(); meta != "" {
			line("meta.json", meta, &now.meta)
		}
		if latest := st.latest(); ended && latest != 0 && latest != was.latest {
			if e, err := s.entry(latest); err == nil && put("latest.md", e.Text()) {
				now.latest = latest
			}
		}
		if st.cwd != "" && st.cwd != was.cwd {
			line("cwd", st.cwd, &now.cwd)
			byCwd(d, st.cwd, s.name)
		}
		first(d, s.name)
		return nil
	})
	s.shown = now
}

// meta is the text of meta.json without its LF.
func (s *Session) meta() string {
	b, err := encode(struct {
		Client    libctx.ClientID `json:"client"`
		Agent     libctx.Agent    `json:"agent"`
		Scope     string          `json:"scope"`
		Workspace string          `json:"workspace,omitzero"`
	}{s.st.client, s.place.Agent, s.st.scope, s.st.workspace})
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}

// unixText is a ts as unix seconds.
func unixText(ts string) string {
	t := parseTime(ts)
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.Unix(), 10)
}

// byCwd remembers the session that was last used in a directory.
func byCwd(d *atomicfile.Dir, cwd string, name libctx.Session) {
	h := fnv.New64a()
	h.Write([]byte(cwd)) // a hash never fails to write
	sub, err := d.MkdirAll("index/by-cwd", dirPerm)
	if err != nil {
		return
	}
	defer sub.Close()
	_ = sub.ReplaceLazy(fmt.Sprintf("cwd-%016x", h.Sum64()), []byte(string(name)+"\n"), filePerm)
}

// maxListFile bounds index/list: names of 64 bytes, tens of thousands of them.
const maxListFile = 4 << 20

// first puts a session at the head of index/list. Two sessions that do it at
// the same instant may lose one of the two moves, and only that.
func first(d *atomicfile.Dir, name libctx.Session) {
	names := readList(d)
	if len(names) > 0 && names[0] == name {
		return
	}
	var b strings.Builder
	fmt.Fprintln(&b, name)
	for _, n := range names {
		if n != name {
			fmt.Fprintln(&b, n)
		}
	}
	sub, err := d.MkdirAll("index", dirPerm)
	if err != nil {
		return
	}
	defer sub.Close()
	_ = sub.ReplaceLazy("list", []byte(b.String()), filePerm)
}

// readList is index/list; lines that are no session names are left out.
func readList(d *atomicfile.Dir) []libctx.Session {
	text, err := d.ReadFile("index/list", maxListFile)
	if err != nil {
		return nil
	}
	var names []libctx.Session
	for _, n := range strings.Split(string(text), "\n") {
		if name, err := libctx.ParseSession(n); err == nil {
			names = append(names, name)
		}
	}
	return names
}
