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
	't': bare,                                  // window reports, see asks
	'u': question | dollar | ampersand | comma, // keyboard flags, DECRQTSR, DECRQUPSS, DECRQKT
	'v': double,                                // DECRQDE
	'w': dollar,                                // DECRQPSR
	'x': bare,                                  // DECREQTPARM
	'y': star,                                  // DECRQCRA
	'|': hash | quote,                          // XTREPORTSGR, DECRQLP
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
	if rule&form == 0 {
		return false
	}
	if final != 't' {
		return true
	}
	switch n, _ := leading(body); n {
	case 11, 13, 14, 15, 16, 18, 19, 20, 21:
		return true
	default:
		return n > maxNumber
	}
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

// resizeReports is the private mode that reports the size as soon as it is set.
const resizeReports = 2048

// reports reports whether a control sequence sets a mode that reports at once.
func reports(body []byte, final byte) bool {
	if final != 'h' || len(body) == 0 || body[0] != '?' {
		return false
	}
	for body = body[1:]; ; body = body[1:] {
		n, digits := leading(body)
		if n == resizeReports || n > maxNumber {
			return true
		}
		if body = body[digits:]; len(body) == 0 {
			return false
		}
	}
}

// quietly appends the modes of CSI ? h that do not report at once to dst, with
// their markers and semicolons; nothing if none is left.
func quietly(dst, body []byte) []byte {
	empty := len(dst)
	sep := byte('?')
	for mode := range bytes.SplitSeq(body[1:], []byte(";")) {
		if !reports(append([]byte("?"), mode...), 'h') {
			dst = append(append(dst, sep), mode...)
			sep = ';'
		}
	}
	if len(dst) == empty+1 { // only an empty parameter
		dst = dst[:empty]
	}
	return dst
}
