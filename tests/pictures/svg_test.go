package pictures

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/screen"
)

// Sizes in the picture, in pixels. Whatever font a reader's machine has, each
// piece of text begins and ends in its column.
const (
	columnWidth = 8
	lineHeight  = 19
	margin      = 16
	fontSize    = 13.5
)

// looks are the parameters that a picture can show. The colours are dark enough
// for the light ground, which the picture brings along.
var looks = map[string]string{
	"1":  "font-weight:600",
	"2":  "fill:#656d76",
	"3":  "font-style:italic",
	"31": "fill:#b42318",
	"32": "fill:#116329",
	"36": "fill:#0a6c80",
}

// piece is text of one look.
type piece struct {
	column, width int
	text, style   string
}

// svg draws the lines of a terminal that is so many columns wide.
func svg(t *testing.T, lines [][]screen.Cell, columns int) string {
	t.Helper()
	width, height := 2*margin+columns*columnWidth, 2*margin+len(lines)*lineHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %d">`+"\n", width, height, height)
	b.WriteString("<style>text{font:" + fmt.Sprint(fontSize) + "px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328;white-space:pre}</style>\n")
	fmt.Fprintf(&b, `<rect x=".5" y=".5" width="%d" height="%d" rx="8" fill="#fbfbf9" stroke="#c8ccd1"/>`+"\n", width-1, height-1)
	for y, line := range lines {
		if len(line) == 0 {
			continue
		}
		fmt.Fprintf(&b, `<text y="%d">`, margin+y*lineHeight+14)
		for _, p := range pieces(line) {
			fmt.Fprintf(&b, `<tspan x="%d" textLength="%d"`, margin+p.column*columnWidth, p.width*columnWidth)
			if p.style != "" {
				var css []string
				for param := range strings.SplitSeq(p.style, ";") {
					if looks[param] == "" {
						t.Fatalf("%q looks in a way that pictures do not show: %s", p.text, p.style)
					}
					css = append(css, looks[param])
				}
				fmt.Fprintf(&b, ` style="%s"`, strings.Join(css, ";"))
			}
			b.WriteString(">")
			if err := xml.EscapeText(&b, []byte(p.text)); err != nil {
				t.Fatal(err)
			}
			b.WriteString("</tspan>")
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// pieces takes a line apart where its look changes and where several blanks are.
func pieces(line []screen.Cell) (all []piece) {
	column, blank := 0, 0
	for _, c := range line {
		if c.Text == " " { // no look in looks shows in it
			blank++
			column++
			continue
		}
		last := len(all) - 1
		if last >= 0 && blank < 2 && all[last].style == c.Style {
			all[last].text += strings.Repeat(" ", blank) + c.Text
			all[last].width += blank + c.Width
		} else {
			all = append(all, piece{column, c.Width, c.Text, c.Style})
		}
		blank = 0
		column += c.Width
	}
	return all
}
