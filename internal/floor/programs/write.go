package programs

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Write writes a file that something will execute. No process is forked
// meanwhile: a child has the descriptors of its parent until it executes, and a
// file that is open for writing cannot be executed (execve(2), ETXTBSY).
func Write(path string, content []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, mode)
}

// Copy copies a file to one that is not there yet, as Write does.
func Copy(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in) // in the kernel, from page to page
	return errors.Join(err, out.Chmod(0o755), out.Close())
}
