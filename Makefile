# The verbs of this repository. `make help` lists them.

SHELL := /bin/bash
GO ?= go
# Two packages at a time: the tests of one package may hold a whole RocketMQ.
TEST_FLAGS ?= -count=1 -p 2 -timeout 20m
SQLC := $(GO) tool -modfile=tools/go.mod sqlc
ATLAS := $(GO) tool -modfile=tools/atlas/go.mod atlas
STATICCHECK := $(GO) tool -modfile=tools/lint/go.mod staticcheck

.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)$$/\1|\2/' | while IFS='|' read -r verb text; do printf '  %-14s %s\n' "$$verb" "$$text"; done

.PHONY: dev
dev: ## Run everything in one process: database, simulated vendor, API (DATA=folder keeps the data there)
	$(GO) run ./cmd/aivedio dev $(if $(DATA),--data "$(DATA)")

.PHONY: build
build: ## Build the binaries into bin/
	$(GO) build -trimpath -o bin/ ./cmd/...

.PHONY: test
test: prerequisites ## Test everything with real PostgreSQL, Redis and RocketMQ
	$(GO) test $(TEST_FLAGS) ./...

.PHONY: test-unit
test-unit: ## Test what needs no service, in under a minute
	$(GO) test -short -timeout 5m ./...

.PHONY: test-race
test-race: ## Test what needs no service under the race detector
	$(GO) test -race -short -timeout 10m ./...

.PHONY: verify
verify: ## Check format, vet, lint, the rules of the tree, generated files and the schema
	GO="$(GO)" SQLC="$(SQLC)" STATICCHECK="$(STATICCHECK)" tools/verify.sh

.PHONY: generate
generate: ## Write the generated files again: queries (sqlc) and documents (go generate)
	$(SQLC) generate
	$(GO) generate ./...

.PHONY: fuzz
fuzz: ## Run each fuzz target for a few seconds (FUZZTIME=5s)
	GO="$(GO)" tools/fuzz.sh $(or $(FUZZTIME),5s)

.PHONY: bench
bench: bench-prerequisites ## Measure callbacks and transitions against pgbench (SCENARIO=converge DURATION=20; docs/performance.md lists the scenarios)
	$(GO) run ./cmd/bench $(or $(SCENARIO),converge) --seconds $(or $(DURATION),20)

.PHONY: services
services: prerequisites ## Start real PostgreSQL, Redis and RocketMQ and print their addresses, until Ctrl-C
	@$(GO) run ./internal/testenv/services/cmd

.PHONY: prerequisites
prerequisites: ## Install what the tests need (Debian, as root), or say what is missing
	@tools/prerequisites.sh tests

.PHONY: bench-prerequisites
bench-prerequisites:
	@tools/prerequisites.sh bench
