//go:build linux

package run

import (
	"fmt"
	"maps"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/supervise"
)

// blind records that from now on the sensors of the run do not see what, one of
// the Blind constants of package event: the verdict on the record is PARTIAL then.
// Reason says why, seen what is seen of it all the same ("" for nothing). Each
// pair of what and reason is recorded once. An error means that it could not be
// recorded, and that the run is being ended for it.
func (o *observers) blind(what, reason, seen string) error {
	key := [2]string{what, reason}
	o.mu.Lock()
	said := o.blinded[key]
	if o.blinded == nil {
		o.blinded = map[[2]string]bool{}
	}
	o.blinded[key] = true
	o.mu.Unlock()
	if said {
		return nil
	}
	detail := map[string]string{"reason": reason, "seen": seen}
	maps.DeleteFunc(detail, func(_, v string) bool { return v == "" })
	return o.bus.Append(event.Event{Action: event.RecordBlind, Object: what, Detail: detail})
}

// blindFromStart declares what the sensors of the run cannot see from its
// beginning. Landlock's own records are not among it: they are a cross-check that
// only root can have, and no level promises it.
func (o *observers) blindFromStart() error {
	level := o.task.Plan.Record.Level
	o.mu.Lock()
	calls, root := o.calls != nil, o.root != nil
	o.mu.Unlock()
	switch {
	case !o.bus.Recording():
		return nil
	case !calls:
		return o.blind(event.BlindCalls, fmt.Sprintf("no system call is reported with the record at level %s", level),
			"what the supervisor itself decides: connections, requests, credentials, approvals")
	case root:
		return nil
	}
	return o.blind(event.BlindLookups, "/dev/fuse cannot be opened here, so that nothing serves the root of the view and stat(2) and its like are not seen",
		"what opens, executes, changes, connects, enters a directory, reads a link or asks for access")
}

// blinding is the sink of a sensor that can lose sight of something while it
// watches, and says so in an event of its own.
type blinding struct {
	sink      supervise.Sink
	observers *observers
}

// Observe is that of the sink.
func (b blinding) Observe(e event.Event) error {
	if err := b.sink.Observe(e); err != nil {
		return err
	}
	return b.look(e)
}

// Emit is that of the sink.
func (b blinding) Emit(e event.Event) error {
	if err := b.sink.Emit(e); err != nil {
		return err
	}
	return b.look(e)
}

func (b blinding) look(e event.Event) error {
	switch {
	case e.Action == event.FileLookup && e.Detail["names"] != "":
		return b.observers.blind(event.BlindLookups, "so many different names were asked for at once that some are only counted", "how many they were, by process")
	case e.Detail["compared"] == "no":
		return b.observers.blind(event.BlindChanges, "what a call did could not be held against what is said of it: the first such event says why", "the path that it was made with")
	case e.Action == event.HoneyRead && e.Detail["lost"] != "":
		return b.observers.blind(event.BlindHoney, "the kernel's queue overflowed, and some of its reports are lost", "")
	}
	return nil
}
