//go:build !linux

package launch

import "syscall"

// childAttr leaves the child as it is: only Linux can tie its life to ours.
func childAttr() *syscall.SysProcAttr { return nil }
