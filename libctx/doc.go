// Package libctx holds the nouns every CortexFS program shares: identifier
// types with one checking constructor each, every limit of the system with its
// unit, and the version. Bare strings from outside become these types in a
// decoder and nowhere else.
//
// The sub-packages are small and named by what they are about: wire frames,
// control files, sessions, the sandbox recipe. Programs import libctx and never
// one another.
package libctx
