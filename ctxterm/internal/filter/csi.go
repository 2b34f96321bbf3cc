package filter

import "bytes"

// A bit for each form of a control sequence that can ask: by its private marker
// if it has no intermediate, by its intermediate otherwise.
const (
	bare = 1 << iota
	less
	equals
	greater
	question
	hash
	dollar
	ampersand
	quote
	star
	comma
	double
	other
)

// forms of the control sequences that terminals answer, by final byte.
var asking = [128]uint16{
	'R': hash,                                  // XTREPORTCOLORS
	'S': question | hash,                       // XTSMGRAPHICS, XTTITLEPOS
	'c': bare | equals | greater,               // DA1, DA3, DA2
	'g': question,                              // XTQFMTKEYS
	'm': question,                              // XTQMODKEYS
	'n': bare | question,                       // DSR
	'p': dollar,                                // DECRQM
	'q': greater,                               // XTVERSION
	'u': question | dollar | ampersand | comma, // keyboard flags, DECRQTSR, DECRQUPSS, DECRQKT
	'v': double,                                // DECRQDE
	'w': dollar,                                // DECRQPSR
	'x': bare,                                  // DECREQTPARM
	'y': star,                                  // DECRQCRA
	'|': hash | quote,                          // XTREPORTSGR, DECRQLP
}

// barred reports whether a control sequence of these parameters and
// intermediates may not reach clients: it asks, or it acts on more than the
// picture. What acts are the printer (MC) and the window (XTWINOPS, which also
// has the stack of titles, where clients keep the person's own).
func barred(body []byte, final byte) bool {
	if final == 'i' || final == 't' {
		form, ok := shape(body)
		if !ok || form&(bare|question) != 0 {
			return true
		}
	}
	return asks(body, final)
}

// asks reports whether terminals answer a control sequence of these parameters
// and intermediates. A malformed one asks if any of its final byte does.
func asks(body []byte, final byte) bool {
	rule := asking[final&0x7F]
	if rule == 0 {
		return false
	}
	form, ok := shape(body)
	if !ok {
		return true
	}
	return rule&form != 0
}

// shape is the form of a control sequence; it is not ok if its parts are not in
// their order.
func shape(body []byte) (form uint16, ok bool) {
	form = bare
	if len(body) > 0 && body[0] >= '<' {
		form = less << (body[0] - '<')
		body = body[1:]
	}
	if n := len(body); n > 0 && body[n-1] < '0' {
		form = intermediate(body[n-1])
		body = body[:n-1]
	}
	for _, b := range body {
		if b < '0' || b > ';' {
			return 0, false
		}
	}
	return form, true
}

func intermediate(b byte) uint16 {
	switch b {
	case '"':
		return double
	case '#':
		return hash
	case '$':
		return dollar
	case '&':
		return ampersand
	case '\'':
		return quote
	case '*':
		return star
	case ',':
		return comma
	}
	return other
}

// maxNumber is the largest number that terminals tell apart: they cut or wrap
// larger ones, so that those could be any.
const maxNumber = 0xFFFF

// leading is the number that b begins with and how many digits it has; more than
// maxNumber is maxNumber+1.
func leading(b []byte) (n, digits int) {
	for digits < len(b) && b[digits] >= '0' && b[digits] <= '9' {
		n = min(n*10+int(b[digits]-'0'), maxNumber+1)
		digits++
	}
	return n, digits
}

// Private modes that clients may not have: the one that reports the size as soon
// as it is set, and keys as Windows has them, among which no client would find
// the one to leave by.
const (
	resizeReports = 2048
	win32Keys     = 9001
)

// locksKeys is the ANSI mode in which a terminal takes no keys.
const locksKeys = 2

// unwanted reports whether a control sequence sets a mode that clients may not
// have.
func unwanted(body []byte, final byte) bool {
	if final != 'h' || len(body) == 0 {
		return false
	}
	private := body[0] == '?'
	if private {
		body = body[1:]
	} else if body[0] < '0' || body[0] > ';' {
		return false
	}
	for ; ; body = body[1:] {
		n, digits := leading(body)
		if n > maxNumber || private && (n == resizeReports || n == win32Keys) || !private && n == locksKeys {
			return true
		}
		if body = body[digits:]; len(body) == 0 {
			return false
		}
	}
}

// quietly appends the modes of a control sequence with h that clients may have
// to dst, with their markers and semicolons; nothing if none is left.
func quietly(dst, body []byte) []byte {
	empty := len(dst)
	mark := ""
	if body[0] == '?' {
		mark, body = "?", body[1:]
	}
	dst = append(dst, mark...)
	kept := 0
	for mode := range bytes.SplitSeq(body, []byte(";")) {
		if unwanted(append([]byte(mark), mode...), 'h') {
			continue
		}
		if kept > 0 {
			dst = append(dst, ';')
		}
		dst = append(dst, mode...)
		kept++
	}
	if len(dst) == empty+len(mark) { // only an empty parameter
		dst = dst[:empty]
	}
	return dst
}
