package control

import (
	"fmt"
	"strconv"
	"time"
)

// Writers for the table of files: each is the inverse of the parser beside it.

func word[T ~string](v T) []byte { return Line(string(v)) }

func words[T ~string](all []T) []byte {
	var b []byte
	for _, v := range all {
		b = append(b, word(v)...)
	}
	return b
}

func stringer[T fmt.Stringer](v T) []byte { return Line(v.String()) }

func decimal[T int | uint32](n T) []byte { return Line(strconv.FormatInt(int64(n), 10)) }

func decimals(all []uint32) []byte {
	var b []byte
	for _, n := range all {
		b = append(b, decimal(n)...)
	}
	return b
}

func writePid(pid int) []byte {
	if pid == 0 {
		return nil
	}
	return decimal(pid)
}

func writeParent(p Parent) []byte {
	if p.Agent == "" {
		return nil
	}
	return Line(p.String())
}

func writeTimeout(d time.Duration) []byte { return Line(FormatTimeout(d)) }

func writeReplay(safe bool) []byte {
	if safe {
		return Line(ReplaySafe)
	}
	return Line(ReplayUnsafe)
}

func writeParallel(yes bool) []byte {
	if yes {
		return Line("1")
	}
	return Line("0")
}
