module cortexfs.org/ctx

go 1.26
