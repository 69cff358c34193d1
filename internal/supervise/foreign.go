//go:build linux

package supervise

import (
	"strconv"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// foreignABI names the numbers that a call is made by where they are not this
// architecture's, as the table of the filter does; "" for its own.
func foreignABI(n *notification) string {
	switch {
	case n.arch != nativeABI:
		return "*foreign"
	case uint32(n.nr)&x32Bit != 0:
		return "*x32"
	}
	return ""
}

// foreign ends a process that uses the call numbers of another architecture, as the
// filter itself does if nothing is recorded. The call is never carried out.
func (s *Supervisor) foreign(c *call, abi string) {
	c.info = &unknownCall
	c.refusal, c.refused = unix.ENOSYS, true
	c.proc = s.caller(c)
	e := event.Event{Action: event.SysCall, Object: abi, Verdict: event.Denied, Layer: event.LayerFilter}
	c.add("call", strconv.FormatUint(uint64(uint32(c.nr)), 10))
	c.add("args", hexes(c.args[:]))
	// While the caller waits for its answer, the descriptor is that of its process.
	// SIGSYS, which the filter sends, could be caught when it comes from us.
	if c.proc.pidfd >= 0 && s.listener.valid(c.id) {
		_ = unix.PidfdSendSignal(c.proc.pidfd, unix.SIGKILL, nil, 0)
	}
	s.answer(c)
	e.Detail, e.Process = c.detail, c.proc.eventProcess()
	s.observe(&e)
}

// hexes writes arguments as the record has them.
func hexes(args []uint64) string {
	text := make([]byte, 0, 64)
	for i, a := range args {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendUint(append(text, "0x"...), a, 16)
	}
	return string(text)
}
