//go:build linux

package probe

import "maps"

// traces says by ID what must be seen of a row that does not say so itself. What
// stands there is what the record has at its standard level, of the attempt
// itself, for root and for an ordinary user. A look-up of what is not in view is
// heard by the root of the view, which needs /dev/fuse; where other events are
// of the same attempt, they are named instead.
func traces() map[string]Trace {
	return joined(
		linkTraces, pathTraces, denyTraces, procTraces, mountTraces, handleTraces, raceTraces, socketTraces, terminalTraces, processTraces,
		syscallTraces, privilegeTraces, environmentTraces, credentialTraces, exhaustionTraces, supervisorTraces, archiveTraces,
	)
}

// joined is one table of several; an ID stands in one of them.
func joined(tables ...func() map[string]Trace) map[string]Trace {
	all := map[string]Trace{}
	for _, table := range tables {
		maps.Copy(all, table())
	}
	return all
}

// withTraces gives each row what the tables say of it: its trace, where it has
// none, and its pace.
func withTraces(rows []Row) []Row {
	paced(rows)
	all := traces()
	for i := range rows {
		if rows[i].Trace.empty() {
			rows[i].Trace = all[rows[i].ID]
		}
	}
	return rows
}

// trail joins what must be seen of one row.
func trail(parts ...Trace) (t Trace) {
	for _, p := range parts {
		t.Events, t.Rules = append(t.Events, p.Events...), append(t.Rules, p.Rules...)
	}
	return t
}

// overLimit is the end of a run by one of its limits, which raises an alert.
func overLimit(limit string) Trace {
	return trail(did(sessionLimit, limit), raised("limit"))
}

// refused is the same attempt on each of the objects, denied by that layer.
func refused(layer, action string, objects ...string) (t Trace) {
	for _, o := range objects {
		t.Events = append(t.Events, Attempt{Action: action, Object: o, Verdict: "denied", Layer: layer})
	}
	return t
}

// did is the same attempt on each of the objects, whatever came of it: the place
// is a private one, or the kernel answers by itself.
func did(action string, objects ...string) (t Trace) {
	for _, o := range objects {
		t.Events = append(t.Events, Attempt{Action: action, Object: o})
	}
	return t
}

// byStat is t, which need not stand in a record that declares that it does not see
// look-ups: a program asks by stat(2) or its like, is told that there is nothing,
// and goes no further. To be told of each would have git and compilers wait for the
// supervisor at every file.
func byStat(t Trace) (out Trace) {
	for _, a := range t.Events {
		a.ByStat = true
		out.Events = append(out.Events, a)
	}
	for _, r := range t.Rules {
		out.Events = append(out.Events, Attempt{Action: alertRaise, Object: r, ByStat: true})
	}
	return out
}

// ran is a program that was executed with each of the arguments.
func ran(args ...string) (t Trace) {
	for _, a := range args {
		t.Events = append(t.Events, Attempt{Action: "proc.exec", Arg: a})
	}
	return t
}

// mutated is every kind of change of each of the objects, denied by that layer
// (see mutate of package inside).
func mutated(layer string, objects ...string) (t Trace) {
	for _, action := range []string{"file.write", "file.truncate", "file.rename", "file.unlink", "file.chmod", "file.chown", "file.xattr"} {
		t = trail(t, refused(layer, action, objects...))
	}
	return t
}

// quarantined are the objects that were held back at the end, with the alert.
func quarantined(objects ...string) Trace {
	return trail(refused("protected", "file.quarantine", objects...), raised("quarantined"))
}

// raised are rules that must have raised an alert.
func raised(rules ...string) Trace { return Trace{Rules: rules} }

// nothing is why no record can say anything of a row.
func nothing(why string) Trace { return Trace{None: why} }

// Why nothing can be seen, of several rows.
const (
	honest   = "the attempt must work, and does: it is what honest work looks like"
	declined = "the launcher declines before a session begins, and a record is of a session"
	readOnly = "whether a file of the view may be read the kernel decides by its mode; to be told of it would have every open of every program " +
		"wait for the supervisor, which is what the level full is for"
	procRead = "what may be read in /proc the kernel decides by itself; to be told of it would have every open of every program " +
		"wait for the supervisor, which is what the level full is for"
	noSuchProcess = "inside no process has that number, so that the kernel answers before there is anything to refuse; " +
		"to be told of signals would have every shell wait for the supervisor"
	noDescriptor   = "the descriptor is not there: calls on its number end in the process that makes them, and are hot in every program"
	ownState       = "a process looks at its own state, by what every program may ask of itself"
	ownEnvironment = "a process finds its environment in its own memory, and asks nobody"
	output         = "what is printed is the command's result, and no part of a record of attempts"
	locks          = "which file a lock is of stands behind a descriptor; to be told of locks would have every database wait for the supervisor"
	limits         = "the kernel tells the asker alone that there is no more of it"
)
