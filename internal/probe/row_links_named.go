//go:build linux

package probe

// linksOfFlags are paths that a user names and something inside prepared.
func linksOfFlags() []Row {
	return []Row{
		{ID: "LNK-101", Class: classLinks, Kind: Sandbox, Promise: "P2",
			Title:        "a directory that the user lets be written to is a link of the workspace to a place outside",
			Refs:         []string{"symlink(7)", "CVE-2025-53109"},
			Links:        map[string]string{"W/l": "O"},
			Options:      Options{Write: []string{"W/l"}},
			RefusalHolds: true,
			Action:       "overwrite", Args: []string{"path=W/l/canary"}},
		{ID: "LNK-101b", Class: classLinks, Kind: Sandbox, Promise: "P1",
			Title:        "a directory that the user lets be read lies behind a link of the workspace",
			Refs:         []string{"symlink(7)", "CVE-2025-59829"},
			Plant:        []string{"O/sub/notes"},
			Links:        map[string]string{"W/up": "O"},
			Options:      Options{Read: []string{"W/up/sub"}},
			RefusalHolds: true,
			Action:       "read", Args: []string{"path=W/up/sub/notes"}},
		{ID: "LNK-103", Class: classLinks, Kind: Sandbox, Promise: "P2",
			Title:   "a file of the workspace that may only be read is replaced by renaming a directory above it",
			Refs:    []string{"rename(2)", "mount_namespaces(7)"},
			Files:   map[string]string{"W/p/q/f": "kept\n"},
			Options: Options{Read: []string{"W/p/q/f"}},
			Keep:    []string{"W/p/q/f"},
			Action:  "replace-above", Args: []string{"path=W/p/q/f", "above=W/p/q\nW/p"}},
		{ID: "LNK-103b", Class: classLinks, Kind: Sandbox, Promise: "P2",
			Title:   "a directory that may only be read, in one outside that may be written, is replaced in the same way",
			Refs:    []string{"rename(2)", "mount_namespaces(7)"},
			Files:   map[string]string{"O/tree/a/b/f": "kept\n"},
			Options: Options{Write: []string{"O/tree"}, Read: []string{"O/tree/a/b"}},
			Keep:    []string{"O/tree/a/b/f"},
			Action:  "replace-above", Args: []string{"path=O/tree/a/b/f", "above=O/tree/a"}},
		{ID: "LNK-105", Class: classLinks, Kind: Sandbox, Promise: "P1",
			Title:   "a directory outside that may be read holds a file of secrets",
			Refs:    []string{"CVE-2025-59829"},
			Plant:   []string{"R/sub/.env"},
			Options: Options{Read: []string{"R"}},
			Action:  "read-ways", Args: []string{"path=R/sub/.env"}},
	}
}
