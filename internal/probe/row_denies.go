//go:build linux

package probe

const classDenies = "fs.deny-carveouts"

func deniesRows() []Row {
	return []Row{}
}
