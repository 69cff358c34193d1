//go:build linux

package probe

// moreArchivesRows are forms of archives besides tar's own, each unpacked by a
// reader that does what the entries say, and what a package brings along.
func moreArchivesRows() []Row {
	form := func(id, title, ref, forms string) Row {
		return Row{ID: id, Class: classArchives, Kind: Host, Promise: "P2", Title: title, Refs: []string{ref}, Harmless: unpacked,
			Accept: append([]string{"ENOTDIR", "EEXIST", "EISDIR"}, Denials...), Action: "unpack-form", Args: []string{"forms=" + forms}}
	}
	overlay := []string{".git/hooks/post-checkout", ".git/config", ".vscode/tasks.json", ".mcp.json", ".claude/settings.json", ".bashrc", ".husky/../.git/hooks/pre-push"}
	brings := Row{ID: "ARC-014", Class: classArchives, Kind: Host, Promise: "P3", Title: "a package that is unpacked into the project brings hooks, tasks and servers of its own",
		Refs: []string{"CVE-2021-32803", "npm: package/../"}, Harmless: takenAway, Accept: mutateDenials,
		Files:  repo("W/.git", nil),
		Keep:   []string{"W/.git/config"},
		Absent: []string{"W/.git/hooks/post-checkout", "W/.git/hooks/pre-push", "W/.vscode", "W/.mcp.json", "W/.claude", "W/.bashrc"},
		Action: "unpack-overlay"}
	names := ""
	for i, n := range overlay {
		if i > 0 {
			names += "\n"
		}
		names += n
	}
	brings.Args = []string{"names=" + names}
	return traced([]Row{
		form("ARC-001b", "an entry of a zip climbs out, by slashes, by the other slash and by an absolute name", "zip-slip", "zip\nbackslash"),
		form("ARC-001c", "the name that a compressed file carries climbs out", "RFC 1952, 2.3.1", "gzip"),
		form("ARC-002b", "an extended header, or a form for boot images, gives an entry its name outside", "CVE-2015-1197", "pax\ncpio"),
		form("ARC-005b", "an entry of a zip, or of tar's other form, is a link, and the next goes through it", "CVE-2025-4517", "zip-links\ngnu"),
		form("ARC-005c", "a directory becomes a link between two entries", "CVE-2021-37701", "swapped"),
		form("ARC-005d", "a patch makes a link, and then changes a file behind it", "CVE-2023-23946", "patch"),
		brings,
	})
}
