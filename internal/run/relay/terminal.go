//go:build linux

package relay

import (
	"fmt"
	"sync"
	"syscall"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// rawMode is the user's terminal in raw mode.
type rawMode struct {
	mu      sync.Mutex
	console Console
	restore func()
}

// enterRawMode switches the user's terminal to raw mode, when the command's input is a
// terminal: every key is passed on as it is.
func (r *relay) enterRawMode() (*rawMode, error) {
	m := &rawMode{}
	if !r.Streams.InTerminal || r.proc.Terminal() == nil {
		return m, nil
	}
	m.console = r.Streams.Console
	return m, m.enter()
}

func (m *rawMode) enter() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.console == nil {
		return nil
	}
	restore, err := m.console.Raw()
	if err != nil {
		return fmt.Errorf("switching the terminal to raw mode: %w", err)
	}
	m.restore = restore
	return nil
}

func (m *rawMode) undo() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.restore != nil {
		m.restore()
		m.restore = nil
	}
}

// flush drops what was typed for the command, or sent by the terminal in
// answer to something that it printed last: the user's shell must not read it.
func (m *rawMode) flush() {
	if m.console != nil {
		m.console.Flush()
	}
}

// jobControl stops with the command and continues it when continued.
func (r *relay) jobControl(raw *rawMode) {
	for range r.proc.Changes() {
		if r.Streams.Console == nil {
			continue
		}
		raw.undo()
		r.Streams.Console.Suspend()
		raw.enter()
		r.resize()
		r.proc.Signal(syscall.SIGCONT)
	}
}

func (r *relay) resize() {
	if m := r.proc.Terminal(); m != nil && r.Streams.Console != nil {
		size := r.Streams.Console.Size()
		sys.SetTerminalSize(m, size.Rows, size.Cols) // a command that has ended needs none
	}
}
