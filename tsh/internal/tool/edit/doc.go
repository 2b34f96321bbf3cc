// Package edit is the built-in tools that change files: fs.write and fs.replace.
// A file changes as a whole or not at all: a complete new one beside it takes its
// name, after a last look at the old one. No symbolic link is followed, and
// whoever owns a file, may use it or is linked to it stays what it was.
package edit
