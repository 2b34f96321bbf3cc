package render

import "strconv"

// Dollars shows a cost in picodollars as dollars, to a hundredth of a cent: one
// that is smaller is "<$0.0001" and not nothing.
func Dollars(pico int64) string {
	const step = 100_000_000 // picodollars of a hundredth of a cent
	switch {
	case pico < 0:
		return "unknown"
	case pico == 0:
		return "$0"
	case pico < step:
		return "<$0.0001"
	}
	n := pico / step
	if pico%step >= step/2 {
		n++
	}
	digits := strconv.FormatInt(10_000+n%10_000, 10)
	return "$" + strconv.FormatInt(n/10_000, 10) + "." + digits[1:]
}

// Known shows a number of which more may be unknown: as it is, "at least" it, or
// "unknown" where nothing of it is known.
func Known(text string, any, all bool) string {
	switch {
	case all:
		return text
	case any:
		return "at least " + text
	}
	return "unknown"
}
