package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// postgresVersion is the PostgreSQL that is downloaded when none is named.
const postgresVersion = embedded.V17

// postgresBinaries returns the folder with initdb and postgres: the one named
// by AIVEDIO_POSTGRES_BIN (the folder itself or the one above it), otherwise
// a cached copy of the build on Maven Central, downloaded on first use.
func postgresBinaries(ctx context.Context) (string, error) {
	if dir := os.Getenv("AIVEDIO_POSTGRES_BIN"); dir != "" {
		for _, d := range []string{dir, filepath.Join(dir, "bin")} {
			if hasServer(d) {
				return d, nil
			}
		}
		return "", fmt.Errorf("AIVEDIO_POSTGRES_BIN=%s holds no initdb and postgres", dir)
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir := cachedPostgres(cache)
	done := make(chan error, 1)
	go func() { done <- install(dir, fetchPostgres) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		// The download cannot be told to stop; it ends by itself and the
		// next start finds its result.
		return "", fmt.Errorf("download PostgreSQL %s: %w", postgresVersion, ctx.Err())
	}
	if err != nil {
		return "", fmt.Errorf("get PostgreSQL %s (AIVEDIO_POSTGRES_BIN can name an installed one): %w", postgresVersion, err)
	}
	return filepath.Join(dir, "bin"), nil
}

// HasPostgres reports whether StartPostgres finds its binaries without a download.
func HasPostgres() bool {
	if os.Getenv("AIVEDIO_POSTGRES_BIN") != "" {
		return true
	}
	cache, err := CacheDir()
	return err == nil && hasServer(filepath.Join(cachedPostgres(cache), "bin"))
}

// cachedPostgres is the folder of the downloaded build.
func cachedPostgres(cache string) string {
	return filepath.Join(cache, fmt.Sprintf("postgresql-%s-%s-%s", postgresVersion, runtime.GOOS, runtime.GOARCH))
}

func hasServer(bin string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if fi, err := os.Stat(filepath.Join(bin, name)); err != nil || fi.IsDir() {
			return false
		}
	}
	return true
}

// fetchPostgres downloads, verifies and unpacks PostgreSQL into dir.
//
// embedded-postgres does that inside Start only, and the rest of Start does
// not suit us: it runs pg_ctl, which detaches the server from its parent, and
// cannot run as root. So Start is pointed at a data folder that claims to be
// initialised and is empty; it unpacks, then fails, and that failure counts
// only if the binaries are missing.
func fetchPostgres(dir string) error {
	scratch, err := os.MkdirTemp(filepath.Dir(dir), "fetch-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	data := filepath.Join(scratch, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("17\n"), 0o600); err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	cfg := embedded.DefaultConfig().Version(postgresVersion).Port(uint32(port)).
		CachePath(filepath.Join(scratch, "archive")).RuntimePath(filepath.Join(scratch, "run")).
		BinariesPath(dir).DataPath(data).Logger(io.Discard)
	if repo := os.Getenv("AIVEDIO_MAVEN_REPOSITORY"); repo != "" {
		cfg = cfg.BinaryRepositoryURL(repo)
	}
	db := embedded.NewDatabase(cfg)
	startErr := db.Start()
	if startErr == nil {
		return errors.Join(errors.New("PostgreSQL started on an empty data folder"), db.Stop())
	}
	if !hasServer(filepath.Join(dir, "bin")) {
		return startErr
	}
	return nil
}
