module cortexfs.org/ctxd

go 1.26
