// Package life has what packages go through on a machine: they are installed,
// installed again, upgraded, removed and purged, while people use what is in them.
// It needs root, so `make test` includes it only there.
package life
