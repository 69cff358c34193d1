//go:build linux

package sensors

import (
	"fmt"
	"maps"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/supervise"
)

// blind records that from now on the sensors of the run do not see what, one of
// the Blind constants of package event: the verdict on the record is PARTIAL then.
// reason says why; seen is what is still seen of it, "" for nothing. Each pair of
// what and reason is recorded once. An error means that it could not be recorded
// and that the run is being ended for it.
func (s *Set) blind(what, reason, seen string) error {
	key := [2]string{what, reason}
	s.mu.Lock()
	declared := s.blinded[key]
	if s.blinded == nil {
		s.blinded = map[[2]string]bool{}
	}
	s.blinded[key] = true
	s.mu.Unlock()
	if declared {
		return nil
	}
	detail := map[string]string{"reason": reason, "seen": seen}
	maps.DeleteFunc(detail, func(_, v string) bool { return v == "" })
	return s.config.Bus.Append(event.Event{Action: event.RecordBlind, Object: what, Detail: detail})
}

// blindFromStart declares what the sensors of the run cannot see from its
// beginning. The kernel's Landlock audit is not part of it: it is a cross-check that
// only root can have, and no level promises it.
func (s *Set) blindFromStart() error {
	level := s.config.Plan.Record.Level
	s.mu.Lock()
	calls, root := s.calls != nil, s.root != nil
	s.mu.Unlock()
	switch {
	case !s.config.Bus.Recording():
		return nil
	case !calls:
		return s.blind(event.BlindCalls, fmt.Sprintf("no system call is reported with the record at level %s", level),
			"what the supervisor itself decides: connections, requests, credentials, approvals")
	case root:
		return nil
	}
	return s.blind(event.BlindLookups, "/dev/fuse cannot be opened here, so that nothing serves the root of the view and stat(2) and its like are not seen",
		"what opens, executes, changes, connects, enters a directory, reads a link or asks for access")
}

// blinding is the sink of a sensor that can lose sight of something while it watches:
// it declares that when an event shows it.
type blinding struct {
	sink supervise.Sink
	set  *Set
}

// Observe implements supervise.Sink.
func (b blinding) Observe(e event.Event) error {
	if err := b.sink.Observe(e); err != nil {
		return err
	}
	return b.declare(e)
}

// Emit implements supervise.Sink.
func (b blinding) Emit(e event.Event) error {
	if err := b.sink.Emit(e); err != nil {
		return err
	}
	return b.declare(e)
}

func (b blinding) declare(e event.Event) error {
	switch {
	case e.Action == event.FileLookup && e.Detail["names"] != "":
		return b.set.blind(event.BlindLookups, "so many different names were asked for at once that some are only counted", "how many they were, by process")
	case e.Detail["compared"] == "no":
		return b.set.blind(event.BlindChanges, "what a call did could not be compared with what is recorded of it: the first such event says why", "the path that it was made with")
	case e.Action == event.HoneyRead && e.Detail["lost"] != "":
		return b.set.blind(event.BlindHoney, "the kernel's queue overflowed, and some of its reports are lost", "")
	}
	return nil
}
