//go:build unix

package services

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the unprivileged user that a root process runs PostgreSQL as.
type account struct {
	uid, gid uint32
	// passDirs lets the child enter folders that are closed to it, because
	// the data lives below one (root's home, say).
	passDirs bool
}

// detached makes a child that a Ctrl-C in the terminal does not reach, so
// that its owner decides the order of stopping.
func detached(a *account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a == nil {
		return attr
	}
	attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	if a.passDirs {
		allowEnterDirs(attr)
	}
	return attr
}

// accountFor returns nil unless this process is root. Data that belongs to
// another user already is served as that user.
func accountFor(data string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	var st syscall.Stat_t
	if err := syscall.Stat(data, &st); err == nil && st.Uid != 0 {
		return &account{uid: st.Uid, gid: st.Gid}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errU := strconv.ParseUint(u.Uid, 10, 32)
		gid, errG := strconv.ParseUint(u.Gid, 10, 32)
		if errU == nil && errG == nil {
			return &account{uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and neither user postgres nor nobody exists: start as another user")
}

// give hands path and everything below it to a.
func (a *account) give(path string) error {
	return filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, int(a.uid), int(a.gid))
	})
}

// canReach reports whether a may enter every folder above path.
func (a *account) canReach(path string) bool {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		var st syscall.Stat_t
		if err := syscall.Stat(dir, &st); err != nil {
			return false
		}
		bit := uint32(0o001)
		if st.Uid == a.uid {
			bit = 0o100
		} else if st.Gid == a.gid {
			bit = 0o010
		}
		if uint32(st.Mode)&bit == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// errLocked is returned by lockFile when another process holds the lock.
var errLocked = errors.New("locked by another process")

// lockFile takes the lock on path, which ends with this process at the
// latest. Without wait it returns errLocked when somebody else has it.
func lockFile(path string, wait bool) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return func() { f.Close() }, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// pidAlive reports whether a process with this id exists.
func pidAlive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
