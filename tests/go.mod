module cortexfs.org/tests

go 1.26.0

require (
	cortexfs.org/libctx v0.0.0
	github.com/go-json-experiment/json v1.27.2
	github.com/rogpeppe/go-internal v1.16.0
	golang.org/x/sys v0.50.0
)

require (
	github.com/elastic/go-seccomp-bpf v1.6.0 // indirect
	github.com/oklog/ulid/v2 v2.1.2 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
)

replace cortexfs.org/libctx => ../libctx
