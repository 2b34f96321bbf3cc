// Package markdown shows Markdown on a terminal.
package markdown

import "cortexfs.org/libctx/inert"

// Render makes a text for a terminal of that many columns.
func Render(text string, columns int, color bool) string { return inert.Text(text) }
