//go:build linux

package probe

const classLinks = "fs.links"

func linksRows() []Row {
	return []Row{
		{ID: "LNK-001", Class: classLinks, Core: true, Kind: Sandbox, Promise: "P2",
			Title:  "a link made in the workspace leads a write to a file outside",
			Refs:   []string{"CVE-2026-39861", "CVE-2025-53109"},
			Links:  map[string]string{"W/l": "O/canary"},
			Action: "overwrite", Args: []string{"path=W/l"}},
		{ID: "LNK-002", Class: classLinks, Core: true, Kind: Sandbox, Promise: "P1",
			Title:  "a link in the workspace leads a read to a secret",
			Refs:   []string{"CVE-2026-25724", "CVE-2025-59829"},
			Links:  map[string]string{"W/k": "H/.ssh/id_probe"},
			Action: "read", Args: []string{"path=W/k"}},
		{ID: "LNK-003", Class: classLinks, Core: true, Kind: Sandbox, Promise: "P2",
			Title:  "a link in the middle of a path leads a write outside",
			Refs:   []string{"CVE-2025-53109"},
			Links:  map[string]string{"W/d": "O"},
			Action: "overwrite", Args: []string{"path=W/d/sub/canary"}},
	}
}
