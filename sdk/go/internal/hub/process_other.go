//go:build unix && !linux

package hub

import "syscall"

// processAttributes keeps signals of the terminal from the hub. Where the kernel cannot tie the hub to this program, the
// end of the hub's input ends it.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
