//go:build unix

package alert

import "syscall"

// openSafely are the flags with which no link is followed and no pipe waited for.
const openSafely = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
