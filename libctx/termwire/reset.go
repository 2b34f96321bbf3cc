package termwire

// ResetSequence makes a terminal usable again after anything a program may have
// done to it, in the middle of a sequence too. It leaves the alternate screen,
// margins and modes, and ends mouse and focus reports, marks of pastes, keyboard
// protocols, character sets, styles, links and a hidden or coloured cursor. It
// erases nothing; the cursor may be anywhere, so whoever sends it places the
// cursor afterwards.
const ResetSequence = "\x1b\\" + // end of an unfinished string or sequence
	"\x1b<" + // VT52 mode
	"\x1b[?1049l\x1b[?1047l\x1b[?47l" + // alternate screens
	"\x1b[!p" + // soft reset; what it covers varies, so the rest is said again
	"\x1b[?69l\x1b[r\x1b[?6l" + // margins, origin
	"\x1b[4l\x1b[20l\x1b[?5l\x1b[?7h\x1b[?45l" + // insert, newline, reverse video, wrapping
	"\x1b[?5W" + // tab stops
	"\x1b[?1l\x1b>" + // cursor keys and keypad
	"\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l" + // mouse
	"\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?2031l\x1b[?2048l" + // focus, paste, held output, reports of colours and size
	"\x1b[>4;0m\x1b[<99u\x1b[=0u\x1b[?9001l" + // keyboard protocols
	"\x0f\x1b(B\x1b)B\x1b*B\x1b+B" + // character sets
	"\x1b]8;;\x1b\\" + // link
	"\x1b]112\x1b\\\x1b[0 q\x1b[?25h" + // cursor
	"\x1b[m"
