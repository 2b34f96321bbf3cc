package session

import (
	"errors"
	"io/fs"
	"sort"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
)

// Current is the session that commands mean when they name none: that of
// index/current, else the default session. What is not a session name there is
// errdefs.Invalid.
func (p Place) Current() (libctx.Session, error) {
	name := libctx.DefaultSession
	err := p.in(p.sessions(), func(d *atomicfile.Dir) error {
		text, err := d.ReadFile("index/current", 4<<10)
		if err != nil {
			return err
		}
		name, err = libctx.ParseSession(strings.TrimSuffix(string(text), "\n"))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return libctx.DefaultSession, nil
	}
	if err != nil {
		return "", errdefs.New(errdefs.KindOf(err), "current session of agent %s: %w", p.Agent, err)
	}
	return name, nil
}

// SetCurrent makes a session the current one, durably. It need not exist yet.
func (p Place) SetCurrent(name libctx.Session) error {
	if err := p.check(name); err != nil {
		return err
	}
	err := p.make(p.sessions()+"/index", func(d *atomicfile.Dir) error {
		return d.Replace("current", []byte(string(name)+"\n"), filePerm)
	})
	return p.at(name, err)
}

// List describes the agent's sessions, the one that was used last first. It
// reads only, and takes no session from its owner. A session whose ledger is
// damaged is listed with what could be read and says so in Damage; one that can
// not be opened at all has nothing but its name and Damage.
func (p Place) List() ([]Info, error) {
	if _, err := libctx.ParseAgent(string(p.Agent)); err != nil {
		return nil, err
	}
	var names, recent []libctx.Session
	err := p.in(p.sessions(), func(d *atomicfile.Dir) error {
		entries, err := d.ReadDir(".")
		if err != nil {
			return err
		}
		for _, e := range entries {
			name, err := libctx.ParseSession(e.Name())
			if err != nil || !e.IsDir() {
				continue
			}
			if _, err := d.Lstat(e.Name() + "/" + ledgerFile); err == nil {
				names = append(names, name)
			}
		}
		recent = readList(d)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "sessions of agent %s: %w", p.Agent, err)
	}
	rank := make(map[libctx.Session]int, len(recent))
	for i, name := range recent {
		rank[name] = i - len(recent) // listed ones come before the others
	}
	infos := make([]Info, len(names))
	for i, name := range names {
		infos[i] = p.describe(name)
	}
	sort.SliceStable(infos, func(i, j int) bool {
		a, b := infos[i], infos[j]
		if rank[a.Session] != rank[b.Session] {
			return rank[a.Session] < rank[b.Session]
		}
		return a.Updated.After(b.Updated)
	})
	return infos, nil
}

func (p Place) describe(name libctx.Session) Info {
	r, err := p.Read(name)
	if err != nil {
		return Info{Session: name, Damage: err.Error()}
	}
	defer r.Close()
	return r.Info()
}
