module cortexfs.org/tests

go 1.26
