//go:build linux

package probe

const classMounts = "ns.mounts-namespaces"

func mountsRows() []Row {
	return []Row{}
}
