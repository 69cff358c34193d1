//go:build linux

package harness

// recordControls returns what makes the record complete and keeps it out of
// reach.
func recordControls() []Control {
	return []Control{
		{Name: "the record", Omit: []string{"record"}, Root: true, User: true, Record: true,
			Rows: []string{"HST-026b", "HST-181", "HST-030", "HST-031", "HST-032", "HST-034"}},
		{Name: "the record of names outside the view", Omit: []string{"record"}, Root: true, Record: true,
			Rows: []string{"HST-030b"}, Why: "many hosts let root alone open the device of the root"},
		{Name: "calls that only seem to execute", Omit: []string{"seccomp:process"}, Root: true, User: true, Record: true,
			Rows: []string{"HST-168"}, Why: "the kernel answers without executing, and the record would have an execution"},
		{Name: "the launcher's own is in no view", Omit: []string{"state"}, Root: true, User: true, Record: true,
			Rows: []string{"HST-024", "HST-024c", "HST-025"}},
		{Name: "the launcher's own is in no view and belongs to somebody else", Omit: []string{"state", "task-id"}, Root: true, User: true, Record: true,
			Rows: []string{"HST-024b"}, Why: "what root runs has an id that root's files are not for, so that it could read some of them at most"},
		{Name: "refusals by whoever listens", Omit: []string{"listener-refusals"}, Root: true, User: true, Record: true,
			Rows: []string{"HST-033", "HST-033b"}},
		{Name: "read-only binds, Landlock and paths that change", Omit: []string{"view"}, Root: true, User: true, Record: true,
			Rows: []string{"HST-033c"}},
		{Name: "calls are held against what they did", Omit: []string{"comparison"}, Root: true, User: true, Record: true,
			Rows: []string{"HST-170"}},
		{Name: "baits", Network: true,
			Why: "without them there is nothing in the home that could be sent, and the row says that it proved nothing"},
		{Name: "death of the launcher",
			Why: "the kernel ends the first process inside with its parent (PR_SET_PDEATHSIG), and answers reported calls with ENOSYS and look-ups with ENOTCONN when nobody listens: neither has a switch"},
		{Name: "bounds of the record",
			Why: "they are constants of the log, which has no switch; tests of that package set them low"},
	}
}
