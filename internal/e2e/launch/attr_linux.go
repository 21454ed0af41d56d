package launch

import "syscall"

// childAttr puts the child into a group of its own, so that Ctrl-C leaves the
// order of stopping to this process, and ties its life to ours.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
