//go:build linux

package native

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// errJanitor ends a run whose janitor was killed.
var errJanitor = errors.New("the process that guards the run (holdfast-jan) was killed, which ended the run")

// attendJanitor waits for the janitor. One that ends although nothing asked it to was
// killed: then everything inside is killed here.
func (p *process) attendJanitor() {
	p.state, p.waited = p.janitor.Wait()
	if !p.ended.Load() {
		p.mu.Lock()
		p.lost = true
		if p.firstfd >= 0 {
			_ = unix.PidfdSendSignal(p.firstfd, unix.SIGKILL, nil, 0)
		}
		p.mu.Unlock()
	}
	close(p.cleaned)
}

// holdFirst notes the first process inside, whose parent is a live janitor.
func (p *process) holdFirst(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("opening the first process inside (pidfd_open): %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first, p.firstfd = pid, fd
	if p.lost {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	return nil
}

// dropFirst closes the descriptor of the first process.
func (p *process) dropFirst() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.firstfd >= 0 {
		unix.Close(p.firstfd)
		p.firstfd = -1
	}
}

// lossWait is how long the end of the janitor may come after that of what died
// with it.
const lossWait = time.Second

// lossReason says why everything inside ended before the command's end was reported.
func (p *process) lossReason(err error) error {
	select {
	case <-p.cleaned:
	case <-time.After(lossWait):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost {
		return errJanitor
	}
	return fmt.Errorf("the first process inside ended before the command: %w", err)
}
