package screen

import "strconv"

// sgr carries out SGR.
func (s *Screen) sgr() {
	p, st := &s.params, &s.cur.pen
	if p.n == 0 {
		*st = style{link: st.link}
		return
	}
	for i := 0; i < p.n; {
		end := i + 1
		for p.sub(end) {
			end++
		}
		n := p.get(i, 0)
		switch {
		case n == 38 || n == 48 || n == 58:
			var c color
			var ok bool
			if end > i+1 {
				c, ok = colonColor(p, i+1, end)
			} else {
				c, ok, end = semicolonColor(p, i+1)
			}
			if ok {
				st.color(n, c)
			}
		case n == 4 && end > i+1:
			if u := p.get(i+1, 0); u <= 5 {
				st.attr = st.attr&^underline | attr(u)<<underShift
			}
		default:
			st.apply(n)
		}
		i = end
	}
}

// apply is one parameter of SGR that stands alone.
func (st *style) apply(n int) {
	switch {
	case n == 0:
		*st = style{link: st.link}
	case n >= 1 && n <= 9 && n != 4:
		st.attr |= [...]attr{1: bold, 2: faint, 3: italic, 5: blink, 6: blink, 7: inverse, 8: invisible, 9: strike}[n]
	case n == 4:
		st.attr = st.attr&^underline | 1<<underShift
	case n == 21:
		st.attr = st.attr&^underline | 2<<underShift
	case n == 22:
		st.attr &^= bold | faint
	case n >= 23 && n <= 29 && n != 26:
		st.attr &^= [...]attr{3: italic, 4: underline, 5: blink, 7: inverse, 8: invisible, 9: strike}[n-20]
	case n >= 30 && n <= 37:
		st.fg = indexed + color(n-30)
	case n == 39:
		st.fg = 0
	case n >= 40 && n <= 47:
		st.bg = indexed + color(n-40)
	case n == 49:
		st.bg = 0
	case n == 53:
		st.attr |= overline
	case n == 55:
		st.attr &^= overline
	case n == 59:
		st.under = 0
	case n >= 90 && n <= 97:
		st.fg = indexed + color(n-90+8)
	case n >= 100 && n <= 107:
		st.bg = indexed + color(n-100+8)
	}
}

func (st *style) color(n int, c color) {
	switch n {
	case 38:
		st.fg = c
	case 48:
		st.bg = c
	case 58:
		st.under = c
	}
}

// colonColor reads 5:N, 2:R:G:B and 2:SPACE:R:G:B.
func colonColor(p *params, from, end int) (color, bool) {
	switch p.get(from, 0) {
	case 5:
		return index(p.get(from+1, 0)), end > from+1 && p.get(from+1, 0) < 256
	case 2:
		if end-from >= 5 {
			from++
		}
		if end-from < 4 {
			return 0, false
		}
		return mix(p.get(from+1, 0), p.get(from+2, 0), p.get(from+3, 0))
	}
	return 0, false
}

// semicolonColor reads 5;N and 2;R;G;B, and says where what follows begins.
func semicolonColor(p *params, from int) (color, bool, int) {
	switch p.get(from, 0) {
	case 5:
		n := p.get(from+1, 0)
		return index(n), from+1 < p.n && n < 256, from + 2
	case 2:
		if from+3 >= p.n {
			return 0, false, p.n
		}
		c, ok := mix(p.get(from+1, 0), p.get(from+2, 0), p.get(from+3, 0))
		return c, ok, from + 4
	}
	return 0, false, from + 1
}

func index(n int) color { return indexed + color(n&0xFF) }

func mix(r, g, b int) (color, bool) {
	return direct + color(r&0xFF)<<16 + color(g&0xFF)<<8 + color(b&0xFF), max(r, g, b) < 256
}

// appendSGR appends what gives a terminal exactly this style, but for the link.
func appendSGR(dst []byte, st style) []byte {
	dst = append(dst, "\x1b["...)
	dst = appendStyle(dst, st)
	dst = append(dst, 'm')
	// Forms with colons go alone: a terminal that does not know them drops
	// the whole sequence.
	if u := st.attr & underline >> underShift; u > 1 {
		dst = append(dst, "\x1b[4:"...)
		dst = append(strconv.AppendInt(dst, int64(u), 10), 'm')
	}
	if st.under != 0 {
		dst = append(dst, "\x1b[58"...)
		if st.under&direct != 0 {
			dst = appendColor(dst, ":2:", st.under, ':')
		} else {
			dst = appendColor(dst, ":5", st.under, ':')
		}
		dst = append(dst, 'm')
	}
	return dst
}

// appendStyle appends the parameters for a style, but for those with colons.
func appendStyle(dst []byte, st style) []byte {
	dst = append(dst, '0')
	for i, n := range [...]int{1, 2, 3, 5, 7, 8, 9, 53} {
		if st.attr&(1<<i) != 0 {
			dst = strconv.AppendInt(append(dst, ';'), int64(n), 10)
		}
	}
	if st.attr&underline == 1<<underShift {
		dst = append(dst, ";4"...)
	}
	dst = appendPlane(dst, st.fg, 30)
	return appendPlane(dst, st.bg, 40)
}

// appendPlane appends the colour of the text, base 30, or behind it, base 40.
func appendPlane(dst []byte, c color, base int) []byte {
	n := int(c & 0xFF)
	switch {
	case c == 0:
		return dst
	case c&direct != 0:
		dst = strconv.AppendInt(append(dst, ';'), int64(base+8), 10)
		return appendColor(dst, ";2", c, ';')
	case n < 8:
		return strconv.AppendInt(append(dst, ';'), int64(base+n), 10)
	case n < 16:
		return strconv.AppendInt(append(dst, ';'), int64(base+60+n-8), 10)
	}
	dst = strconv.AppendInt(append(dst, ';'), int64(base+8), 10)
	return appendColor(dst, ";5", c, ';')
}

func appendColor(dst []byte, kind string, c color, sep byte) []byte {
	dst = append(dst, kind...)
	if c&direct != 0 {
		dst = strconv.AppendInt(append(dst, sep), int64(c>>16&0xFF), 10)
		dst = strconv.AppendInt(append(dst, sep), int64(c>>8&0xFF), 10)
	}
	return strconv.AppendInt(append(dst, sep), int64(c&0xFF), 10)
}
