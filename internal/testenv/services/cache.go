package services

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CacheDir returns the folder for downloads that outlive a run (PostgreSQL
// binaries, RocketMQ jars) and makes it. AIVEDIO_CACHE_DIR names another one.
//
// Root gets a folder below /var/cache, because its home is closed to the
// unprivileged account that PostgreSQL has to run as.
func CacheDir() (string, error) {
	dir := os.Getenv("AIVEDIO_CACHE_DIR")
	if dir == "" && os.Geteuid() == 0 {
		dir = "/var/cache/aivedio"
	}
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the cache folder: %w; %s", err, nameCache)
		}
		dir = filepath.Join(base, "aivedio")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder: %w; %s", err, nameCache)
	}
	return dir, nil
}

// nameCache says what helps where the cache cannot be used.
const nameCache = "name a folder that you may write to with AIVEDIO_CACHE_DIR, or set HOME"

// install runs fill on an empty folder and moves the result to dir, unless
// dir is there already. Processes that ask for the same dir take turns, and a
// run that is cut short leaves nothing behind that looks complete.
func install(dir string, fill func(tmp string) error) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	unlock, err := lockFile(dir+".lock", true)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; %s", err, nameCache)
	}
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	tmp := dir + ".partial"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	if err := fill(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}
