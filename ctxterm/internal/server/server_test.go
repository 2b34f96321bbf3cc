package server

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/ctxterm/internal/mux"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/termwire"
)

const (
	watch  = `{"op":"watch","cols":80,"rows":24}` + "\n"
	attach = `{"op":"attach","cols":80,"rows":24}` + "\n"
	emit   = `{"op":"emit"}` + "\n"
)

func input(b string) string {
	return `{"op":"input","data_b64":"` + base64.StdEncoding.EncodeToString([]byte(b)) + `"}` + "\n"
}

func TestModes(t *testing.T) {
	r := newRig(t, anybody)
	for line, mode := range map[string]string{watch: "watch", attach: "attach", emit: "emit", `{"op":"watch"}` + "\n": "watch"} {
		c := r.say(line)
		if hello := c.until("hello").(*termwire.Hello); hello.Mode != mode {
			t.Errorf("%s: mode %s", line, hello.Mode)
		}
		c.send(`{"op":"detach"}` + "\n")
		for c.frame() != nil {
		}
	}
}

// Rights are those of the mode: what a watcher or an emitter sends besides ends
// its connection, whatever it claims.
func TestNobodyDoesMore(t *testing.T) {
	for mode, lines := range map[string][]string{
		watch: {
			input("x"), attach, watch, `{"op":"resize","cols":10,"rows":10}`, `{"op":"signal","name":"KILL"}`, emit,
			`{"op":"output","data_b64":"eA=="}`, `{"op":"no such"}`, "garbage", "{}", `{"op":"input","mode":"attach","uid":0,"data_b64":"eA=="}`,
		},
		emit:   {input("x"), attach, watch, `{"op":"resize","cols":10,"rows":10}`, `{"op":"signal","name":"KILL"}`, "garbage"},
		attach: {attach, watch, emit, `{"op":"output","data_b64":"eA=="}`},
	} {
		for _, line := range lines {
			r := newRig(t, anybody)
			r.say(mode+strings.TrimSpace(line)+"\n").refused("EACCES", true)
			select {
			case typed := <-r.program.typed:
				t.Errorf("%s%s: typed %q", mode, line, typed)
			case s := <-r.signals:
				t.Errorf("%s%s: %v", mode, line, s)
			default:
			}
			if again := r.say(watch).until("hello").(*termwire.Hello); again.Size != termwire.DefaultSize {
				t.Errorf("%s%s: the terminal is %v", mode, line, again.Size)
			}
			r.finish()
		}
	}
}

func TestAnAttachedClientTypesAndSignals(t *testing.T) {
	r := newRig(t, anybody)
	c := r.say(attach + input("héllo\r\x00\xff") + `{"op":"signal","name":"TSTP"}` + "\n" + `{"op":"resize","cols":100,"rows":30}` + "\n")
	if got := <-r.program.typed; got != "héllo\r\x00\xff" {
		t.Errorf("typed %q", got)
	}
	if got := <-r.signals; got != syscall.SIGTSTP {
		t.Errorf("%v", got)
	}
	if got := c.until("resized").(*termwire.Resized); got.Cols != 100 || got.Rows != 30 {
		t.Errorf("%v", got.Size)
	}
}

// What an attached client gets wrong it is told, and goes on.
func TestWrongLines(t *testing.T) {
	r := newRig(t, anybody)
	c := r.say(attach)
	for _, line := range []string{
		`{"op":"input","data_b64":"@@@"}`, `{"op":"input","data_b64":"eA="}`, `{"op":"input","data_b64":""}`, `{"op":"input"}`, `{"op":"input","data_b64":7}`,
		`{"op":"input","data_b64":"` + strings.Repeat("eHh4", libctx.MaxTermInput/3+10) + `"}`,
		`{"op":"resize","cols":0,"rows":0}`, `{"op":"resize"}`, `{"op":"resize","cols":65535,"rows":65535}`, `{"op":"resize","cols":-1,"rows":5}`,
		`{"op":"resize","cols":80.5,"rows":24}`, `{"op":"resize","cols":99999999999999999999,"rows":24}`,
		`{"op":"signal","name":"STOP"}`, `{"op":"signal","name":"9"}`, `{"op":"signal"}`, `{"op":"dance"}`, `{}`, `[]`, ``, `null`, "\x00\xff",
		`{"op":"detach","op":"input"}`, `{"op":"input","data_b64":"eA==","data_b64":"eQ=="}`, `{"OP":"detach"}`,
	} {
		c.send(line + "\n")
		c.refused("EINVAL", false)
	}
	c.send(input("still here"))
	if got := <-r.program.typed; got != "still here" {
		t.Errorf("typed %q", got)
	}
}

func TestFirstLines(t *testing.T) {
	r := newRig(t, anybody)
	for _, line := range []string{
		input("x"), `{"op":"detach"}`, `{"op":"attach"}`, `{"op":"attach","cols":80}`, `{"op":"watch","cols":0,"rows":24}`, `{"op":"watch","cols":80}`,
		`{"op":"attach","cols":65535,"rows":65535}`, "", "hello", `{"op":"watch","scrollback":-1}`,
	} {
		r.say(strings.TrimSpace(line)+"\n").refused("EINVAL", true)
	}
	r.say(strings.Repeat("x", 2*libctx.MaxTermLine)).refused("EMSGSIZE", true)
}

func TestLinesThatAreTooLong(t *testing.T) {
	r := newRig(t, anybody)
	for mode, limit := range map[string]int{attach: libctx.MaxFrame, emit: libctx.MaxFrame, watch: libctx.MaxTermLine} {
		c := r.say(mode)
		go c.Write(make([]byte, 2*limit)) // it is not read to the end
		c.refused("EMSGSIZE", true)
	}
	r.say(attach + input("x"))
	<-r.program.typed
}

// Half a line and then nothing, and no line at all, cost a client's slot and
// nothing else. One that closes its writing side only still sees everything.
func TestSilence(t *testing.T) {
	r := newRig(t, anybody)
	half, quiet, nothing := r.say(watch+`{"op":"det`), r.say(watch), r.dial()
	quiet.CloseWrite()
	r.say(attach + input("x"))
	<-r.program.typed
	for _, c := range []*client{half, quiet} {
		c.until("screen")
	}
	r.mux.Write([]byte("printed"))
	for _, c := range []*client{half, quiet} {
		if got := c.until("output").(*termwire.Bytes); string(got.Data) != "printed" {
			t.Errorf("%q", got.Data)
		}
	}
	r.finish()
	for _, c := range []*client{half, quiet} {
		c.until("exit")
	}
	if f := nothing.frame(); f != nil {
		t.Errorf("one that said nothing is told %s", f.Kind())
	}
}

// Whoever does not say in time what it wants is dropped.
func TestNoFirstLine(t *testing.T) {
	t.Parallel()
	r := newRig(t, anybody)
	nothing, half := r.dial(), r.say(`{"op":"wat`)
	nothing.refused("ETIMEDOUT", true)
	half.refused("ETIMEDOUT", true)
}

func TestTooManyClients(t *testing.T) {
	r := newRig(t, anybody)
	var all []*client
	for range libctx.MaxTermClients {
		all = append(all, r.say(watch))
	}
	for _, c := range all {
		c.until("screen")
	}
	r.dial().refused("EAGAIN", true)
	r.mux.Write([]byte("for all"))
	for _, c := range all {
		c.until("output")
	}
	r.finish()
	for _, c := range all {
		c.until("exit")
	}
}

// A program that does not read: the client that types is not read further, its
// leaving is noticed, and others see what is printed.
func TestTheProgramDoesNotRead(t *testing.T) {
	r := newRigWith(t, anybody, &program{deaf: true})
	watcher := r.say(watch)
	watcher.until("screen")
	typist := r.say(`{"op":"attach","cols":40,"rows":10}` + "\n")
	typist.until("screen")
	watcher.until("resized")
	stuck := make(chan error, 1)
	go func() {
		line := []byte(input(strings.Repeat("x", libctx.MaxTermInput)))
		for {
			if _, err := typist.Write(line); err != nil {
				stuck <- err
				return
			}
		}
	}()
	r.mux.Write([]byte("output goes on"))
	typist.until("output")
	other := r.say(`{"op":"attach","cols":60,"rows":20}` + "\n")
	other.until("hello")
	typist.Close()
	<-stuck
	if got := other.until("resized").(*termwire.Resized); got.Cols != 60 || got.Rows != 20 {
		t.Errorf("the terminal is %v", got.Size)
	}
}

// A client that takes nothing does not keep the terminal from ending.
func TestTheEndWaitsForNobodyLong(t *testing.T) {
	r := newRig(t, anybody)
	stopped, reader := r.say(watch), r.say(watch)
	reader.until("screen")
	stopped.until("screen")
	done := make(chan struct{})
	go func() {
		defer close(done)
		reader.until("exit")
	}()
	for i := range 300 {
		r.mux.Write([]byte(strings.Repeat(fmt.Sprintf("line %d\r\n", i), 500)))
	}
	r.finish()
	<-done
}

func TestAPeerIsRefusedBeforeItSpeaks(t *testing.T) {
	r := newRig(t, func(peercred.Peer) error { return errdefs.New(errdefs.Denied, "not you") })
	r.dial().refused("EACCES", true)
}

func TestOutside(t *testing.T) {
	guard := Outside(1000)
	for p, ok := range map[peercred.Peer]bool{
		{UID: 1000}: true, {UID: 1000, PID: 7}: false, {UID: 1000, PID: 1}: false,
		{UID: 0}: false, {UID: 65534}: false, {UID: 0, PID: 7}: false, {UID: 1001}: false,
	} {
		if err := guard(p); (err == nil) != ok || err != nil && !errdefs.Is(err, errdefs.Denied) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestBeside(t *testing.T) {
	uid := uint32(os.Getuid())
	guard := Beside(uid)
	child := exec.Command("sh", "-c", "read x; exit 0")
	hold, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		peer peercred.Peer
		ok   bool
	}{
		"our parent":       {peercred.Peer{UID: uid, PID: int32(os.Getppid())}, true},
		"the first":        {peercred.Peer{UID: uid, PID: 1}, true},
		"another user's":   {peercred.Peer{UID: uid + 1, PID: int32(os.Getppid())}, false},
		"nobody we know":   {peercred.Peer{UID: uid}, false},
		"one that is gone": {peercred.Peer{UID: uid, PID: 1 << 30}, false},
		"a child":          {peercred.Peer{UID: uid, PID: int32(child.Process.Pid)}, false},
		"we":               {peercred.Peer{UID: uid, PID: int32(os.Getpid())}, false},
	} {
		if err := guard(c.peer); (err == nil) != c.ok || err != nil && !errdefs.Is(err, errdefs.Denied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	hold.Close()
	child.Wait()
}

// Every operation that changes something names who may do it.
func TestEveryOperationHasItsModes(t *testing.T) {
	for name, row := range ops {
		if len(row.modes) == 0 || row.do == nil || row.may(mux.Watch) && name != "detach" {
			t.Errorf("%s: %v", name, row.modes)
		}
	}
}
