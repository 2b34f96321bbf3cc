package terminal

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"cortexfs.org/tests/internal/screen"
	"golang.org/x/sys/unix"
)

// picture is a program that fills a terminal.
type picture struct {
	files   map[string]string // in the workspace
	command string            // for bash
	begin   steps             // to a picture that is worth to be compared
	more    steps             // to another one
	quit    steps
	varies  bool // shows what is the case here and now
	flows   bool // does not draw anew what it has written, when the size changes
}

const source = `/* 漢字 and a cafe\u0301, tabs	and	colours */
#include <stdio.h>
int main(int argc, char **argv) {
	for (int i = 0; i < 10; i++)
		printf("%d %s\n", i, "a string");
	return 0; // a remark
}
`

func long() string {
	var b strings.Builder
	for i := range 200 {
		b.WriteString("\x1b[3" + string(rune('1'+i%7)) + ";1mline\x1b[m number " + strings.Repeat("\x1b[4mword\x1b[24m 漢 ", i%20) + "\n")
	}
	return b.String()
}

const tmuxConf = `
set -g status-right ''
set -g status-left '[#S] '
set -g mouse on
set -g default-terminal screen-256color
set -g default-command "PS1='in> ' exec bash --norc --noprofile"
set -g automatic-rename off
set -g escape-time 0
set -g main-pane-width 30
set-hook -g window-resized 'select-layout main-vertical'
set -g assume-paste-time 0
`

// steps are keys, each with a pattern of what is to be seen when they have done
// their work.
type steps [][2]string

var pictures = map[string]picture{
	"vim": {
		files:   map[string]string{"main.c": source, "long": long()},
		command: "exec vim -u NONE -i NONE -n -N --cmd 'set mouse=a nu hls laststatus=2 ruler nomore bg=dark' -c 'syn on' main.c",
		begin:   steps{{"", "a string"}, {"/int" + enter, "3,1 "}, {"jVjj", "VISUAL LINE"}, {"", " 6,"}},
		more:    steps{{"\x1b:vsplit long" + enter, "long +1,"}, {"5\x05G", "200,"}},
		quit:    steps{{"\x1b:qa!" + enter, ""}},
	},
	"less": {
		files:   map[string]string{"long": long()},
		command: "exec less -R -N -S --mouse long",
		begin:   steps{{"", " 20 "}, {"50g", " 72 "}, {"/number $" + enter, " 83 "}},
		more:    steps{{"\x1b[C", ""}, {"50g5j", ""}, {"j", " (74|78) .*\n:$"}},
		quit:    steps{{"q", ""}},
	},
	"tmux": {
		files:   map[string]string{"tmux.conf": tmuxConf, "main.c": source},
		command: "exec tmux -L $$ -f tmux.conf new -s here -n window",
		begin: steps{{"", "in>"}, {"cat main.c" + enter, "a remark(?s:.*)in>"}, {"\x02%", "│in>"}, {"\x02\"", "─(?s:.*)│in>"}, {"seq 30" + enter, "30 *\n.*│in>"},
			{"printf '\\e[7;32mgreen\\e[m \\e[1;38;5;208mbold\\n'" + enter, "green bold *\n.*│in>"}},
		more: steps{{"\x02;", ""}, {"echo up$((1+1))per" + enter, "up2per *\n(?s:.*)in>"}, {"\x02[", "\\[0/"}},
		quit: steps{{"q", ""}, {"\x02:", "\n:$"}, {"kill-server" + enter, ""}},
	},
	"htop": {
		command: "exec htop --delay 30",
		begin:   steps{{"", "F10"}, {"t", "[├└]─"}, {"\x1b[B\x1b[B", ""}},
		more:    steps{{"t", "F5Tree"}},
		quit:    steps{{"q", ""}},
		varies:  true,
	},
	"bash": {
		command: `PS1='\[\e[1;35m\]here>\[\e[m\] ' exec bash --norc --noprofile`,
		begin: steps{{"", "here>$"}, {"clear; echo clear$((1+1))" + enter, "clear2\nhere>$"}, {"printf '\\e[?1000h\\e[?1006h\\e[41m red \\e[m\\e[4 q\\n'" + enter, "\n red\nhere>$"},
			{"echo 'not yet" + enter, "\n>$"}, {"don\x1b[D\x1b[D", "> don$"}, {"X", "> dXon$"}},
		more:  steps{{ctrlC, "\nhere>$"}, {"seq 40" + enter, "\n40\nhere>$"}},
		flows: true,
		quit:  steps{{"exit" + enter, ""}},
	},
}

// direct is the program on a terminal of its own, without anything of the suite.
func (l *lab) direct(t *testing.T, p picture, columns, rows int) *screen.Screen {
	cmd := l.Command("ctx")
	cmd.Path, cmd.Args = "/bin/bash", []string{"bash", "-c", p.command}
	cmd.Env = []string{"TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + l.Home, "PATH=/usr/bin:/bin", "SHELL=/bin/sh", "TMUX_TMPDIR=" + l.Home}
	return screen.Start(t, cmd, columns, rows)
}

// do types in each place, and waits there for what comes of it.
func (s steps) do(places ...*screen.Screen) {
	for _, step := range s {
		for _, place := range places {
			place.Type(step[0])
		}
		for _, place := range places {
			place.Await(step[1], regexp.MustCompile(step[1]).MatchString)
		}
	}
}

// TestPictures: who comes back, and who comes later, sees what the client sees that
// never left, and that is what the program shows on a terminal of its own.
func TestPictures(t *testing.T) {
	l := newLab(t)
	for name, p := range pictures {
		for file, text := range p.files {
			l.Write(l.Workspace+"/"+file, text)
		}
		l.script(name+".sh", p.command)
	}
	t.Run("each", func(t *testing.T) {
		for name, p := range pictures {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := l.start(t, name)
				r.sameSize(t, "bash "+name+".sh"+enter, p)
				r.otherSizes(t, "bash "+name+".sh"+enter, p)
			})
		}
	})
}

// sameSize is about clients of one size.
func (r *room) sameSize(t *testing.T, command string, p picture) {
	stays := r.join(80, 24)
	stays.Type(command)
	own := r.direct(t, p, 80, 24)
	p.begin.do(stays, own)
	golden := func(s *screen.Screen) {
		t.Helper()
		if p.varies {
			s.Like(stays)
		} else {
			s.Like(own)
		}
	}
	golden(stays)
	leaves := r.attach(80, 24)
	golden(leaves)
	detach(t, leaves)
	back := r.attach(80, 24)
	watches := r.client("watch", 80, 24)
	golden(back)
	golden(watches)

	p.more.do(back, own)
	for _, s := range []*screen.Screen{stays, back, watches} {
		golden(s)
	}
	alternate := back.Look().Alternate
	p.quit.do(back, own)
	own.Exit()
	for _, s := range []*screen.Screen{stays, back, watches} {
		ready(s)
		s.Like(stays)
	}
	if after := back.Look(); alternate && (after.Alternate || after.Row < 1 || !strings.HasSuffix(after.Lines[0], strings.TrimSuffix(command, enter))) {
		t.Errorf("on the main screen: %+v", after)
	}
	watches.Type("q")
	watches.Exit()
	clean(t, watches)
	detach(t, stays)
	detach(t, back)
}

// otherSizes is about clients of different sizes: the terminal is as large as the
// smallest that is attached.
func (r *room) otherSizes(t *testing.T, command string, p picture) {
	large := r.join(100, 30)
	large.Type("status" + enter) // whatever was above, this is of the present size
	ready(large)
	large.Type(command)
	own := r.direct(t, p, 100, 30)
	p.begin.do(large, own)
	golden := func(columns, rows int, all ...*screen.Screen) {
		t.Helper()
		if !p.flows && !p.varies {
			own.Looks("a picture of that size", func(l screen.Look) bool { return fills(l, columns, rows) })
			all[0].Like(own)
		}
		for _, s := range all[1:] {
			s.Like(all[0])
		}
	}
	golden(100, 30, large)
	watcher := r.client("watch", 40, 10)
	watcher.Wrote("\x1b[?25")
	golden(100, 30, large) // a watcher does not count
	small := r.attach(60, 20)
	own.Resize(60, 20)
	golden(60, 20, small, large)
	detach(t, large)
	large = r.attach(100, 30)
	middle := r.attach(90, 20)
	golden(60, 20, small, large, middle)
	p.more.do(large, own)
	golden(60, 20, small, large, middle)
	detach(t, small)
	own.Resize(90, 20)
	golden(90, 20, middle, large)
	middle.Resize(70, 25)
	own.Resize(70, 25)
	golden(70, 25, middle, large)
	middle.Signal(unix.SIGKILL)
	middle.Exit()
	own.Resize(100, 30)
	golden(100, 30, large)
	watcher.Type("q")
	watcher.Exit()
	clean(t, watcher)

	p.quit.do(large, own)
	own.Exit()
	ready(large)
	detach(t, large)
}

var styles = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// fills reports whether a picture goes to the right edge, and down to the last line
// but one, below which there may be an empty one for commands.
func fills(l screen.Look, columns, rows int) bool {
	return len(l.Lines) >= rows-1 && slices.ContainsFunc(l.Lines, func(line string) bool {
		line = styles.ReplaceAllString(line, "")
		return utf8.RuneCountInString(line)+strings.Count(line, "漢")+strings.Count(line, "字") == columns
	})
}
