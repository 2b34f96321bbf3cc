module cortexfs.org/tsh

go 1.26
