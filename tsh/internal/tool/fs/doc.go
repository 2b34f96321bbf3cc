// Package fs is the built-in tools that look at files one by one: fs.read,
// fs.list and fs.stat. They bound what they read and say.
package fs
