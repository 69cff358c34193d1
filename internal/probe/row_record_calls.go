//go:build linux

package probe

// recordCalls are rows of calls beside the ones that programs usually make: what
// they do must be in the record, and nothing that they only seem to do.
func recordCalls() []Row {
	return []Row{
		{ID: "HST-168", Title: "a program is asked about and not executed, and the record has it as executed", Refs: []string{"execveat(2) AT_EXECVE_CHECK"},
			Action: "check-exec", Harmless: "to ask changes nothing", Oracle: both(whole, unrecorded(Attempt{Action: "proc.exec", Arg: "probe-never-executed"}))},
		{ID: "HST-169", Title: "datagrams and connections leave by calls that carry the address in a message, and nobody records it", Refs: []string{"sendmsg(2)", "sendmmsg(2)", "tcp(7) MSG_FASTOPEN"},
			Action: "talk-messages", Harmless: "nobody answers there",
			Oracle: recorded(Attempt{Action: "sock.send", Object: "127.0.0.1:47021"}, Attempt{Action: "sock.send", Object: "127.0.0.1:47022"},
				Attempt{Action: "sock.send", Object: "127.0.0.1:47023"}, Attempt{Action: "sock.connect", Object: "127.0.0.1:47024"}, Attempt{Action: "sock.connect", Object: "127.0.0.1:47025"})},
	}
}

// unrecorded demands that the record does not have the attempt.
func unrecorded(a Attempt) func(*World, Observation) []string {
	return func(w *World, _ Observation) []string {
		rec, err := w.record()
		if err != nil {
			return []string{"the record cannot be read: " + err.Error()}
		}
		absent, err := rec.missing([]Attempt{a})
		switch {
		case err != nil:
			return []string{"the record: " + err.Error()}
		case len(absent) == 0:
			return []string{"the record has what did not happen: " + a.Action + " " + a.Arg}
		}
		return nil
	}
}
