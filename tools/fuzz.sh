#!/bin/sh
# Runs each fuzz target of the module for the given time, one after another:
# `go test -fuzz` takes one target of one package only.
set -eu
time=${1:-5s}
go=${GO:-go}

grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | sort | while read -r file; do
	sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' "$file" | while read -r target; do
		echo "fuzz $(dirname "$file") $target"
		$go test -run='^$' -fuzz="^$target\$" -fuzztime="$time" "$(dirname "$file")" </dev/null
	done
done
