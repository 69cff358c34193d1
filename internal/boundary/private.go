package boundary

import (
	"slices"

	"holdfast.dev/holdfast/internal/floor/paths"
)

// ScratchTrees are the directories that are private to a run and writable by every
// program in it: the home and those for temporary files.
func ScratchTrees(home string) []string { return []string{home, "/tmp", "/var/tmp", "/run"} }

// PrivateTrees are all directories that are private to a run.
func PrivateTrees(home string) []string { return append(ScratchTrees(home), "/dev", "/proc", "/sys") }

// InTrees reports whether path is one of the directories, or below one.
func InTrees(path string, trees []string) bool {
	return slices.ContainsFunc(trees, func(dir string) bool { return paths.Within(dir, path) })
}
