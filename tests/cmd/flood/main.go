// Command flood is the program on the terminals that are measured: it writes
// lines as fast as they are taken, gives keys back, or draws one screen.
//
//	flood lines BYTES plain|coloured GATE   waits until GATE can be read, writes, then writes "PID PARENT NANOSECONDS" to GATE.done
//	flood echo                              answers every byte as it comes by how many there were: "<000001>"
//	flood draw ROWS                         draws ROWS lines, then waits for the end of its input
//
// After its work it stays until its terminal is gone.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 4 && args[0] == "lines":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return lines(n, args[2], args[3])
	case len(args) == 1 && args[0] == "echo":
		return echo()
	case len(args) == 2 && args[0] == "draw":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return draw(n)
	}
	return fmt.Errorf("what is %q", args)
}

// lines writes n bytes of lines once the gate is opened.
func lines(n int, kind, gate string) error {
	g, err := os.Open(gate) // a fifo: waits for whoever writes it
	if err != nil {
		return err
	}
	g.Close()
	block := text(kind)
	begun := time.Now()
	for left := n; left > 0; {
		b := block[:min(left, len(block))]
		if _, err := os.Stdout.Write(b); err != nil {
			return err
		}
		left -= len(b)
	}
	took := time.Since(begun)
	os.Stdout.WriteString("\x1b[0m\r\nTHE END\r\n")
	report := fmt.Sprintln(os.Getpid(), os.Getppid(), took.Nanoseconds())
	if err := os.WriteFile(gate+".new", []byte(report), 0o644); err != nil {
		return err
	}
	if err := os.Rename(gate+".new", gate+".done"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// text is about 64 KiB of lines that differ.
func text(kind string) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 64<<10; i++ {
		if kind == "coloured" {
			fmt.Fprintf(&b, "\x1b[1;3%dm%6d\x1b[0m \x1b[38;5;%dm%s\x1b[0m: a line of \x1b[4moutput\x1b[24m\n", i%8, i, i%256, "main.go")
		} else {
			fmt.Fprintf(&b, "%6d main.go: a line of text that is quite ordinary, as lines go\n", i)
		}
	}
	return b.Bytes()
}

func raw() error {
	t, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
	t.Iflag &^= unix.ICRNL
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(0, unix.TCSETS, t)
}

func echo() error {
	if err := raw(); err != nil {
		return err
	}
	buf := make([]byte, 1)
	for n := 1; ; n++ {
		if _, err := os.Stdin.Read(buf); err != nil {
			return err
		}
		if _, err := fmt.Printf("<%06d>", n); err != nil {
			return err
		}
	}
}

func draw(rows int) error {
	if err := raw(); err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("\x1b[2J\x1b[H")
	for i := 1; i < rows; i++ {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[3%dmrow %d of a picture\x1b[0m", i, i%8, i)
	}
	fmt.Fprintf(&b, "\x1b[%d;1Hlast-row", rows)
	if _, err := os.Stdout.Write(b.Bytes()); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
