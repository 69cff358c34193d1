//go:build linux

package probe

const classSupervisor = "host.supervisor"

func supervisorRows() []Row {
	return []Row{}
}
