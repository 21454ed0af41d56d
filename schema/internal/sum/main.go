// Command sum rewrites schema/migrations/atlas.sum after a migration was added.
// Run it from the root of the module: go run ./schema/internal/sum
package main

import (
	"fmt"
	"os"

	"ariga.io/atlas/sql/migrate"
)

func main() {
	if err := run("schema/migrations"); err != nil {
		fmt.Fprintln(os.Stderr, "sum:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	dir, err := migrate.NewLocalDir(path)
	if err != nil {
		return fmt.Errorf("open the migrations: %w", err)
	}
	sum, err := dir.Checksum()
	if err != nil {
		return fmt.Errorf("hash the migrations: %w", err)
	}
	return migrate.WriteSumFile(dir, sum)
}
