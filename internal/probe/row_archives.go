//go:build linux

package probe

const classArchives = "fs.archives"

func archivesRows() []Row {
	return []Row{}
}
