//go:build linux

package probe

const classSyscalls = "sys.syscalls"

func syscallsRows() []Row {
	return []Row{}
}
