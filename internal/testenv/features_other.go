//go:build !linux

package testenv

import (
	"errors"
	"os/exec"
)

var errNotLinux = errors.New("this system is not Linux")

func userNS() error   { return errNotLinux }
func landlock() error { return errNotLinux }
func seccomp() error  { return errNotLinux }

func sameDevice(string, string) (bool, error) { return false, errNotLinux }

// setCredential is never called: no other user is found on this system.
func setCredential(*exec.Cmd, uint32, uint32) {}
