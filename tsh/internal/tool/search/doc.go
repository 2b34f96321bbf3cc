// Package search is the built-in tool fs.search: lines of text files below a
// directory that match a pattern. Files are read by several workers and shown in
// the order of their paths; no symbolic link is followed, and what is read, shown
// and waited for is bounded.
package search
