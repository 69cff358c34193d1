//go:build linux

package probe

const classDeferred = "exec.deferred-files"

func deferredRows() []Row {
	return []Row{}
}
