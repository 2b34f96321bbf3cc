module cortexfs.org/ctxterm

go 1.26
