//go:build linux

package probe

const classRaces = "fs.races"

func racesRows() []Row {
	return []Row{}
}
