package control

import "cortexfs.org/libctx/linefile"

// Perm is the ceiling of what an agent's tools may do, whatever its policy.
type Perm uint8

// The bits, in the values file modes give them.
const (
	Read    Perm = 4
	Write   Perm = 2
	Execute Perm = 1
)

// ParsePerm reads one of the eight triplets from --- to rwx.
func ParsePerm(s string) (Perm, error) {
	for p := range Perm(8) {
		if p.String() == s {
			return p, nil
		}
	}
	return 0, linefile.Refuse(0, s, "is not one of --- --x -w- -wx r-- r-x rw- rwx")
}

// String is the triplet.
func (p Perm) String() string {
	s := []byte("---")
	for i, bit := range []Perm{Read, Write, Execute} {
		if p.Has(bit) {
			s[i] = "rwx"[i]
		}
	}
	return string(s)
}

// Has reports whether every bit of q is in p.
func (p Perm) Has(q Perm) bool { return p&q == q }

// ParsePermFile reads the file perm.
func ParsePermFile(text []byte) (Perm, error) { return value("perm", text, ParsePerm) }
