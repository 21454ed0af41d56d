// Package schema carries the database schema in the binary: the wanted state,
// and the migrations that lead to it with their checksum file, in Atlas format.
package schema

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"strings"
)

// Schema is the wanted state (schema.sql); a test proves that the migrations lead
// to it, and sqlc reads it.
//
//go:embed schema.sql
var Schema string

//go:embed migrations
var embedded embed.FS

// Migrations is the Atlas directory: versioned .sql files and atlas.sum at its
// root.
var Migrations = sub(embedded, "migrations")

// Hash identifies the migrations: equal hashes mean equal files. A database that
// was migrated once can serve as a template for others of the same hash.
func Hash() string {
	sum, err := fs.ReadFile(Migrations, "atlas.sum")
	if err != nil {
		panic(err) // the file is embedded
	}
	digest := sha256.Sum256([]byte(strings.TrimSpace(string(sum))))
	return hex.EncodeToString(digest[:])
}

func sub(all fs.FS, dir string) fs.FS {
	f, err := fs.Sub(all, dir)
	if err != nil {
		panic(err) // only an invalid path of our own can fail
	}
	return f
}
