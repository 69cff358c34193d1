//go:build unix

package alert

import "syscall"

// openSafely are the flags that follow no link and wait for no pipe.
const openSafely = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
