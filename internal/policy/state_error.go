package policy

// StateError means that there is no place for the records of runs.
type StateError struct {
	Dir string
	Err error
}

func (e *StateError) Error() string { return "making the state directory: " + e.Err.Error() }
func (e *StateError) Unwrap() error { return e.Err }

// Hint is what to set.
func (e *StateError) Hint() string {
	return "set XDG_STATE_HOME to a directory that you can write to (now " + e.Dir + " would be used)"
}
