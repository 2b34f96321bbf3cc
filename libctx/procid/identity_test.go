package procid

import (
	"os"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
)

func TestIdentity(t *testing.T) {
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{os.Getpid(), sleeper(t).Process.Pid} {
		c, err := Identity(pid)
		if err != nil || int(c.UID) != os.Geteuid() || int(c.GID) != os.Getegid() || len(c.Groups) != len(groups) {
			t.Fatalf("%+v, %v", c, err)
		}
		for _, g := range groups {
			if !slices.Contains(c.Groups, uint32(g)) {
				t.Errorf("group %d is not among %v", g, c.Groups)
			}
		}
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if _, err := Identity(pid); !errdefs.Is(err, errdefs.NotFound) {
			t.Errorf("%d: %v", pid, err)
		}
	}
}

func TestParseStatus(t *testing.T) {
	const good = "Name:\tx\nUid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\nGroups:\t8 9 \n"
	c, err := parseStatus(good)
	if err != nil || c.UID != 7 || c.GID != 8 || !slices.Equal(c.Groups, []uint32{8, 9}) {
		t.Errorf("%+v, %v", c, err)
	}
	for name, text := range map[string]string{
		"two uids":  strings.Replace(good, "7\t7\t7\t7", "7\t0\t7\t7", 1),
		"two gids":  strings.Replace(good, "8\t8\t8\t8", "8\t8\t8\t0", 1),
		"three":     strings.Replace(good, "7\t7\t7\t7", "7\t7\t7", 1),
		"no groups": strings.Replace(good, "Groups", "Others", 1),
		"letters":   strings.Replace(good, "8 9", "8 x", 1),
		"nothing":   "",
	} {
		if c, err := parseStatus(text); err == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestBoot(t *testing.T) {
	one, err := Boot()
	if err != nil || len(one) != 36 {
		t.Fatalf("%q, %v", one, err)
	}
	if two, err := Boot(); err != nil || two != one {
		t.Errorf("%q, %v", two, err)
	}
}

func FuzzParseStatus(f *testing.F) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("Uid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nGroups:\t\n")
	f.Add("Uid:\nUid:\nUid:\n")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parseStatus(text); err != nil && (c.UID != 0 || c.GID != 0 || c.Groups != nil) {
			t.Errorf("an error and %+v", c)
		}
	})
}
