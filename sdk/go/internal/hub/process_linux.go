package hub

import "syscall"

// processAttributes has the kernel end the hub with this program.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
