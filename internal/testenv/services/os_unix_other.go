//go:build unix && !linux

package services

import "syscall"

func allowEnterDirs(*syscall.SysProcAttr) {}

const canEnterDirs = false
