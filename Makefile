# make demo and make test are all a newcomer needs; `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory

VERSION := $(shell scripts/version)
MODULES := ctx ctxd ctxterm libctx tests tsh
PROGRAMS := ctx ctxd ctxmodel ctxterm tsh ctxtool
PREFIX ?= /usr/local
FORMATS ?= deb rpm archlinux
FUZZTIME ?= 1m
TIME ?= 5m
SEED ?= 0
# Tests with several users, and those on a machine of their own, need root and are in packages of their own.
TESTED = $$([ $$(id -u) = 0 ] && echo work || go list work | grep -vE '/(uids|systemd|tests/system|tests/life)$$')
# Static, in tests as well: a server that gives up its privileges on all threads has no C among them.
export CGO_ENABLED := 0
# The tag leaves out a writer of manual pages that every start would pay for.
export GOFLAGS := -trimpath -buildvcs=false -tags=urfave_cli_no_docs

LDFLAGS := -s -w -buildid= -X cortexfs.org/libctx.Version=$(VERSION)
# Made apart from the workspace: what packages need is nothing that programs are built from.
PACKAGING := cd packaging && GOWORK=off go run
GOBUILD := go build -ldflags '$(LDFLAGS)'

.PHONY: help setup setup-tests build demo test lint alone fuzz soak bench bench-term pictures man packages install clean $(PROGRAMS)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

setup: ## install what the suite needs and this machine lacks, with apt
	@scripts/setup

setup-tests:
	@scripts/setup tests

build: $(PROGRAMS) ## build the programs into bin/

ctx ctxd ctxterm tsh:
	@cd $@ && $(GOBUILD) -o ../bin/$@ .

ctxmodel:
	@cd ctxd && $(GOBUILD) -o ../bin/$@ ./cmd/ctxmodel

ctxtool:
	@cd tsh && $(GOBUILD) -o ../bin/$@ ./cmd/ctxtool

demo: setup build ## an agent answers about a small project, in a temporary tree
	@scripts/demo

test: setup-tests build lint alone ## every check and every test
	cd packaging && GOWORK=off go test ./...
	go test -count=1 -timeout 15m $(TESTED) # no cache: it does not see the programs that tests start

lint: ## formatting and vet
	@unformatted=$$(gofmt -l $(MODULES) packaging); [ -z "$$unformatted" ] || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	go vet work

alone: ## build and vet each module, with its tests, without the workspace
	@for m in $(MODULES) packaging; do (cd $$m && GOWORK=off go build ./... && GOWORK=off go vet ./...) || exit 1; done

fuzz: ## run every fuzz target for FUZZTIME
	@scripts/fuzz $(FUZZTIME)

soak: ## kill, fill and flood the suite for TIME, then check every ledger (docs/endurance.md)
	@cd tests && go test -count 1 -timeout 0 -v -run '^(TestSoak|TestCrowd|TestEveryPoint|TestDisk)$$' ./soak -args -time $(TIME) -seed $(SEED) -keep /tmp/cortexfs-soak

bench: ## measure beside the floors, about five minutes (docs/performance.md)
	@cd tests && go test -run '^$$' -bench . -timeout 20m ./bench

bench-term: ## measure terminals beside tmux, screen and dtach, about a quarter of an hour (docs/performance.md)
	@scripts/setup tests
	@cd tests && go test -run '^$$' -bench . -timeout 60m ./benchterm

pictures: ## draw the pictures of the README anew, from real runs
	@cd tests && go test -count 1 ./pictures -args -update

man: build ## make manual pages and completions, of the programs' own help and docs/man, in dist/reference
	@rm -rf dist/reference
	@$(PACKAGING) ./cmd/reference -top .. -programs ../bin -into ../dist/reference -version $(VERSION) -day $$(date -u -d @$$(../scripts/epoch) +%F)

packages: man ## make packages for Debian, rpm and Arch Linux, or of FORMATS alone, in dist/
	@rm -f dist/cortexfs*
	@$(PACKAGING) ./cmd/packages -top .. -programs ../bin -reference ../dist/reference -modules $$(go env GOMODCACHE) -into ../dist \
		-version $(VERSION) -epoch $$(../scripts/epoch) -arch $$(go env GOARCH) -formats "$(FORMATS)"

install: build man ## copy programs, manual pages and completions to DESTDIR/PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share
	install -m 755 $(addprefix bin/,$(PROGRAMS)) $(DESTDIR)$(PREFIX)/bin
	install -m 755 agent.sh $(DESTDIR)$(PREFIX)/bin/ctx-agent.sh
	cp -R --no-preserve=mode dist/reference/man $(DESTDIR)$(PREFIX)/share
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/bash-completion/completions dist/reference/completions/bash/*
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/zsh/site-functions dist/reference/completions/zsh/*
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d dist/reference/completions/fish/*

clean: ## remove what was built
	rm -rf bin dist /tmp/ctx-programs-$$(id -u)-*
