package machine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long to wait for what must happen; only what fails takes it.
const patience = 60 * time.Second

// apart begins a script that runs as the first process of new process and mount
// namespaces: what it mounts ends with it.
const apart = "mount --make-rprivate /; mount -t proc proc /proc; "

// start is the script that becomes systemd-nspawn. The host's /run is hidden, so
// that nothing is left there; the machine's first control group looks to it like
// the top of a pure hierarchy of version 2.
const start = apart + `
mount -t tmpfs tmpfs /run
exec unshare --cgroup sh -euc 'mount -t cgroup2 cgroup2 /sys/fs/cgroup; exec "$@"' sh "$@"`

// Setup is what a machine has beside its root.
type Setup struct {
	Programs string // a folder of the host, which the machine has as /usr/local/bin
	// Files is a folder of the host whose content is put over the root before the
	// first boot, and Prepare a shell script that is run in the root then, without
	// a systemd. With one of them what the machine writes outlives a Reboot.
	Files, Prepare string
}

// kept begins a script like start, for a machine that is prepared: what it writes
// is kept in memory as long as it exists.
const kept = apart + `
mount -t tmpfs tmpfs /run
tree=$1 files=$2 prepare=$3 m=/run/machine; shift 3
mkdir -p $m/upper $m/work $m/root
mount -t overlay -o "lowerdir=$tree,upperdir=$m/upper,workdir=$m/work" overlay $m/root
[ -z "$files" ] || cp -R --no-preserve=ownership "$files/." $m/root/
if [ -n "$prepare" ]; then
	mount -t proc proc $m/root/proc
	chroot $m/root /bin/sh -euc "$prepare" >&2
	umount $m/root/proc
fi
exec unshare --cgroup sh -euc '
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	again=133 # what nspawn ends with when the machine reboots
	while [ $again = 133 ]; do again=0; "$@" || again=$?; done' sh "$@"`

// Machine is a booted machine.
type Machine struct {
	dir, group string
	news       *net.UnixConn // what nspawn tells
	ready      chan string   // the leader of each boot that is complete, as nspawn calls it
	root, lock *os.File      // locks
	nspawn     *exec.Cmd
	ended      chan struct{} // closed after nspawn's end
	leader     int           // the machine's first process, as the host sees it
	users      atomic.Int32
}

// Boot boots a machine that finds those programs, a folder of the host, in
// /usr/local/bin. It returns when its systemd says that it is up.
func Boot(programs string) (*Machine, error) { return BootWith(Setup{Programs: programs}) }

// BootWith boots a machine with what it needs. It returns when its systemd says
// that it is up.
func BootWith(s Setup) (*Machine, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root can boot a machine")
	}
	top, err := cgroups()
	if err != nil {
		return nil, err
	}
	tree, rootLock, err := root()
	if err != nil {
		return nil, fmt.Errorf("the root of a machine: %w", err)
	}
	m := &Machine{root: rootLock, ended: make(chan struct{}), ready: make(chan string, 1)}
	if err := m.boot(top, tree, s); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *Machine) boot(top, tree string, s Setup) (err error) {
	if m.dir, m.lock, err = folder(top); err != nil {
		return err
	}
	m.group = groupOf(top, m.dir)
	if err := os.Mkdir(m.group, 0o755); err != nil {
		return err
	}
	console, err := os.Create(m.dir + "/console")
	if err != nil {
		return err
	}
	defer console.Close()
	m.news, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: m.dir + "/notify"})
	if err != nil {
		return err
	}
	group, err := os.Open(m.group)
	if err != nil {
		return err
	}
	defer group.Close()
	script := []string{"-euc", start, "sh"}
	place := []string{"--directory", tree, "--volatile=overlay"}
	if s.Files != "" || s.Prepare != "" {
		script = []string{"-euc", kept, "sh", tree, s.Files, s.Prepare}
		place = []string{"--directory", "/run/machine/root"}
	}
	m.nspawn = exec.Command("/bin/sh", slices.Concat(script, []string{"systemd-nspawn", "--boot", "--machine", filepath.Base(m.dir)}, place, []string{
		"--register=no", "--keep-unit", "--notify-ready=yes", "--console=read-only",
		"--private-network", "--link-journal=no", "--resolv-conf=off", "--timezone=off",
		"--bind-ro", s.Programs + ":/usr/local/bin",
	})...)
	m.nspawn.Env = []string{
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "NOTIFY_SOCKET=" + m.dir + "/notify",
		"SYSTEMD_NSPAWN_LOCK=0", // several machines may read one root
	}
	m.nspawn.Stdout, m.nspawn.Stderr = console, console
	m.nspawn.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, Pdeathsig: syscall.SIGKILL,
		Cloneflags:  unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		UseCgroupFD: true, CgroupFD: int(group.Fd()),
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the death signal is for the end of the thread
		err := m.nspawn.Start()
		started <- err
		if err == nil {
			_ = m.nspawn.Wait()
			close(m.ended)
		}
	}()
	if err := <-started; err != nil {
		m.nspawn = nil
		return err
	}
	go m.listen() // until the end of news
	return m.up()
}

// up waits until the machine is up.
func (m *Machine) up() error {
	late := time.NewTimer(patience)
	defer late.Stop()
	var err error
	select {
	case pid := <-m.ready:
		m.leader, err = m.outside(pid)
	case <-m.ended:
		err = errors.New("it ended")
	case <-late.C:
		err = errors.New("the machine did not come up")
	}
	if err != nil {
		text, _ := os.ReadFile(m.dir + "/console")
		return fmt.Errorf("systemd-nspawn: %w: %s", err, tail(text))
	}
	if out, err := m.enter("/bin/sh", "-euc", unlock).CombinedOutput(); err != nil {
		return fmt.Errorf("settings of user namespaces: %w: %s", err, out)
	}
	return nil
}

// unlock lets settings of user namespaces be written, as on a machine that is no
// container: bwrap takes the right to make more of them from what it starts.
const unlock = "mount -t proc proc /mnt; mount --bind /mnt/sys/user /proc/sys/user; umount /mnt"

// listen reads what nspawn tells.
func (m *Machine) listen() {
	leader, buf := "", make([]byte, 4096)
	for {
		n, err := m.news.Read(buf)
		if err != nil {
			return
		}
		for line := range strings.Lines(string(buf[:n])) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch {
			case key == "X_NSPAWN_LEADER_PID":
				leader = value
			case key == "READY" && value == "1":
				m.ready <- leader
			}
		}
	}
}

// Reboot reboots a machine that was prepared, and returns when it is up again.
func (m *Machine) Reboot(t testing.TB) {
	t.Helper()
	m.enter("systemctl", "reboot").Run() // which the reboot may end
	if err := m.up(); err != nil {
		t.Fatal(err)
	}
}

// outside is the host's number of the process that nspawn's namespace calls pid.
func (m *Machine) outside(pid string) (int, error) {
	all := processes()
	parents := map[int]int{}
	for _, p := range all {
		parents[p.pid] = p.parent
	}
	ours := m.nspawn.Process.Pid // nspawn, or the script that starts it
	for _, p := range all {
		if (p.parent == ours || parents[p.parent] == ours) && len(p.numbers) > 1 && p.numbers[1] == pid {
			return p.pid, nil
		}
	}
	return 0, fmt.Errorf("nspawn has no process %q", pid)
}

// folder sweeps what killed tests left, makes a folder for a machine that is to
// run, and locks it.
func folder(top string) (string, *os.File, error) {
	all, err := os.OpenFile(cache+"/lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", nil, err
	}
	defer all.Close()
	if err := unix.Flock(int(all.Fd()), unix.LOCK_EX); err != nil {
		return "", nil, err
	}
	old, _ := filepath.Glob(cache + "/run-*")
	for _, dir := range old {
		if err := sweep(top, dir); err != nil {
			return "", nil, fmt.Errorf("sweeping %s: %w", dir, err)
		}
	}
	dir, err := os.MkdirTemp(cache, "run-")
	if err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(dir+"/lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return dir, nil, err
	}
	return dir, lock, unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// sweep removes a machine that nobody holds the lock of.
func sweep(top, dir string) error {
	lock := free(dir + "/lock")
	if _, err := os.Stat(dir + "/lock"); lock == nil && err == nil {
		return nil
	}
	defer lock.Close()
	if err := killGroup(groupOf(top, dir)); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// groupOf is the control group of the machine with that folder.
func groupOf(top, dir string) string { return filepath.Join(top, "cortexfs-"+filepath.Base(dir)) }

// Close ends the machine at once and removes everything of it.
func (m *Machine) Close() error {
	var err error
	if m.nspawn != nil {
		_ = m.nspawn.Process.Kill() // the whole machine ends with the first process of its namespace
		<-m.ended
	}
	if m.news != nil {
		m.news.Close()
	}
	if m.group != "" {
		err = killGroup(m.group)
	}
	if m.dir != "" {
		err = errors.Join(err, os.RemoveAll(m.dir))
		m.lock.Close()
	}
	return errors.Join(err, m.root.Close())
}
