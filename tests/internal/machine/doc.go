// Package machine boots a throw-away Debian with a real systemd for tests, by
// systemd-nspawn. Its root is made once and kept; what a machine writes is in its
// memory and ends with it. Only root can.
//
// Nothing outlives the process that booted a machine, however that ends: the
// machine is in namespaces of its own, below one process that the kernel kills
// with its parent. What stays of a killed test, a folder and empty control
// groups, is swept by the next one.
package machine
