// Package provider is the grammar of provider files and the one way to them and
// to the keys (docs/reference/model.md). A provider file says where a provider
// is and which models it has; ctx writes it and ctxmodel reads it. Keys are
// files of their own, in a directory of their own, and leave this package only
// as a Secret, which shows itself to nobody who does not ask for it by name.
//
// What another user could have put there is refused: a link anywhere below the
// directories, a foreign owner, a file or directory others may write, a key
// others may read.
package provider
