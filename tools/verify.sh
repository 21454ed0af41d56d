#!/usr/bin/env bash
# Checks what needs no look at behaviour: format, vet, lint, the rules of the
# tree, generated files, the schema. It changes nothing: what it has to write
# in order to compare, it puts back. Every check runs, also after a failure.
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
sqlc=${SQLC:-$go tool -modfile=tools/go.mod sqlc}
staticcheck=${STATICCHECK:-$go tool -modfile=tools/lint/go.mod staticcheck}
failed=()

check() { # name, command…
	local name=$1
	shift
	if "$@"; then
		echo "ok    $name"
	else
		echo "FAIL  $name"
		failed+=("$name")
	fi
}

formatted() {
	local files
	files=$(git ls-files -co --exclude-standard '*.go' | while read -r f; do if [ -f "$f" ]; then echo "$f"; fi; done | xargs gofmt -l) || return
	[ -z "$files" ] || { echo "not formatted: $files"; return 1; }
}

# Documents are generated from code. Generating again must change nothing,
# on a clean tree as well as on one with work in progress.
documents() {
	local before after
	before=$(snapshot) || return
	$go generate ./... || return
	after=$(snapshot) || return
	[ "$before" = "$after" ] && return
	echo "go generate changed files; commit them:"
	diff <(echo "$before") <(echo "$after") | grep '^>'
	return 1
}

snapshot() {
	git ls-files -co --exclude-standard -- docs '*.md' '*_gen.go' '*.json' '*.yaml' |
		while read -r f; do if [ -f "$f" ]; then git hash-object "$f" | sed "s|\$| $f|"; fi; done | sort -k2
}

# The checksums are right, and the migrations give the catalog of schema.sql.
# A renamed or skipped test must not look like success.
migrations() {
	local test=TestMigrationsGiveTheWantedSchema out
	$go test -count=1 ./schema/... || return
	out=$($go test -count=1 -v -run "^$test\$" ./adapters/pgstore/ 2>&1)
	grep -q "^--- PASS: $test" <<<"$out" && return
	echo "$out"
	return 1
}

check "format (gofmt)" formatted
check "vet" $go vet ./...
check "modules (go mod tidy)" $go mod tidy -diff
check "lint (staticcheck)" $staticcheck ./...
check "rules of the tree (archtest)" $go test -count=1 ./internal/archtest/
check "documents (go generate)" documents
if [ -f sqlc.yaml ]; then
	check "queries (sqlc diff)" $sqlc diff
fi
check "schema and migrations agree" migrations

if [ ${#failed[@]} -gt 0 ]; then
	printf 'verify failed: %s\n' "${failed[*]}"
	exit 1
fi
