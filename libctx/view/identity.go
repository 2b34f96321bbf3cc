package view

import (
	"slices"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
)

// principal is a user an agent runs as.
type principal struct {
	id   asuser.Identity
	user string
}

// userOf looks a uid up; the process's own identity is taken as the kernel has
// it.
func userOf(uid uint32) (principal, error) {
	id, user, err := asuser.Lookup(uid)
	if err != nil {
		return principal{}, err
	}
	if id.IsSelf() {
		id = asuser.Self()
	}
	if user == "" {
		user = "agent"
	}
	return principal{id, user}, nil
}

// claim is what the owner, gid and groups controls say; absent ones are nil.
type claim struct {
	owner, gid *uint32
	groups     []uint32
	hasGroups  bool
}

// believe decides who the agent is. dir is the owner of its control directory
// and c what stands in it.
//
// Root's word counts for anybody: a control directory of root may name any
// owner, group and groups. Anybody else's counts for that user alone, always
// with the groups the account files give: naming another is refused, and
// leaving one out drops nothing, because a user can not drop a group either.
// Outside system mode the process can be nobody but itself, so the agent must
// be its own.
func believe(l paths.Layout, control string, dir uint32, c claim) (principal, error) {
	uid := dir
	if c.owner != nil {
		uid = *c.owner
	}
	if dir != 0 && uid != dir {
		return principal{}, errdefs.New(errdefs.Denied, "%s/owner: says uid %d, but the directory belongs to uid %d", control, uid, dir)
	}
	if self := asuser.Self().UID; !l.System && uid != self {
		return principal{}, errdefs.New(errdefs.Denied, "%s: the agent belongs to uid %d, not to you (uid %d)", control, uid, self)
	}
	who, err := userOf(uid)
	if err != nil {
		return principal{}, err
	}
	if dir == 0 && l.System {
		if c.gid != nil {
			who.id.GID = *c.gid
		}
		if c.hasGroups {
			who.id.Groups = c.groups
		}
		return who, nil
	}
	if c.gid != nil && *c.gid != who.id.GID {
		return principal{}, errdefs.New(errdefs.Denied, "%s/gid: says %d, the group of uid %d is %d", control, *c.gid, uid, who.id.GID)
	}
	for _, g := range c.groups {
		if g != who.id.GID && !slices.Contains(who.id.Groups, g) {
			return principal{}, errdefs.New(errdefs.Denied, "%s/groups: says %d, which uid %d is not in", control, g, uid)
		}
	}
	return who, nil
}
