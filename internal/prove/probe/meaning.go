//go:build linux

package probe

import "slices"

// A row means something in every world but those that it names here. World names are
// those of harness.Worlds.

// Names of worlds that some rows mean nothing in.
const (
	WorldWorktree  = "worktree"
	WorldSecondRun = "second-run"
)

// ownRepository are rows that make a repository of their own in the workspace, or
// need that there is none.
var ownRepository = []string{
	"AGT-002f", "ARC-014", "ARG-001", "DEF-027", "DNY-010", "DNY-011b", "DNY-011g", "DNY-012d", "DNY-012f", "DNY-012g", "DNY-012n", "ENV-009", "ENV-009b",
	"GIT-001", "GIT-001b", "GIT-001c", "GIT-001e", "GIT-001f", "GIT-001g", "GIT-001h", "GIT-001i", "GIT-001j", "GIT-001k", "GIT-002", "GIT-002b",
	"GIT-002c", "GIT-002d", "GIT-002e", "GIT-002f", "GIT-003", "GIT-003b", "GIT-003c", "GIT-005", "GIT-005b", "GIT-005c", "GIT-005d", "GIT-007",
	"GIT-007b", "GIT-007c", "GIT-008", "GIT-008b", "GIT-008c", "GIT-009", "GIT-011", "GIT-013", "GIT-015", "GIT-015b", "GIT-015c", "GIT-015d", "GIT-016", "GIT-020",
	"GIT-021", "GIT-022", "GIT-023", "GIT-024", "GIT-025", "GIT-141", "GIT-141b", "GIT-141c", "GIT-142", "GIT-142b", "GIT-143", "GIT-144",
	"GIT-145", "GIT-441", "HST-040d", "HST-501", "HST-501b", "LNK-011c", "LNK-014b", "LNK-017", "LNK-017b", "NSM-001", "NSM-002", "NSM-003", "PTH-012c", "PTH-020", "RAC-009",
	"RVW-001", "RVW-201", "RVW-411", "RVW-412", "RVW-413", "RVW-414",
}

// ownLauncher are rows that start launchers themselves, one after the other, act on
// the one that there is, or look at what it alone leaves: a second one has flags,
// processes and records of its own.
var ownLauncher = []string{
	"AGT-012", "DNY-421", "DNY-421b", "HST-001b", "HST-001c", "HST-004", "HST-004b", "HST-006", "HST-019", "HST-021", "HST-024", "HST-024b",
	"HST-024c", "HST-028", "HST-040b", "HST-040c", "HST-040f", "HST-040g", "HST-381", "HST-421", "HST-422", "NSM-014", "PTH-018d", "PXY-022b",
	"PXY-023", "PXY-401", "RAC-008b", "RES-421c",
}

// withMeaning has each row say where it means nothing.
func withMeaning(rows []Row) []Row {
	for i := range rows {
		r := &rows[i]
		r.NotIn = map[string]string{}
		if slices.Contains(ownRepository, r.ID) {
			r.NotIn[WorldWorktree] = "it makes a repository of its own where the worktree has its link, or needs that there is none"
		}
		switch {
		case slices.Contains(ownLauncher, r.ID):
			r.NotIn[WorldSecondRun] = "it is about one launcher, its flags, processes or records"
		case r.Beside != nil:
			r.NotIn[WorldSecondRun] = "it has a second run of its own"
		case r.Alone != "":
			r.NotIn[WorldSecondRun] = "it counts what the whole machine has"
		case r.Options.Terminal:
			r.NotIn[WorldSecondRun] = "it needs the terminal"
		}
	}
	return rows
}
