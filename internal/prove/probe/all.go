//go:build linux

package probe

import "slices"

// classes make the rows, class by class.
var classes = []func() []Row{
	linksRows,
	pathsRows,
	deniesRows,
	outputRows,
	replacedRows,
	hookRows,
	lentRows,
	procRows,
	mountsRows,
	handlesRows,
	racesRows,
	besideRows,
	startsBeside,
	socketsRows,
	terminalRows,
	processRows,
	syscallsRows,
	privilegeRows,
	environmentRows,
	credentialsRows,
	gitRows,
	deferredRows,
	exhaustionRows,
	supervisorRows,
	recordRows,
	archivesRows,
	commandsRows,
	egressRows,
	netRows,
	dnsRows,
	metadataRows,
	proxyRows,
	channelsRows,
	turnRows,
	sourceRows,
	agentsRows,
	copiesRows,
	mcpRows,
	moreArchivesRows,
	moreSupervisorRows,
	unnamedRows,
	consentRows,
	reviewRows,
	aliveRows,
	reviewGitRows,
}

// All is every row, class by class.
func All() (rows []Row) {
	for _, class := range classes {
		rows = append(rows, class()...)
	}
	for i := range rows {
		if slices.Contains(readTheHome, rows[i].ID) && rows[i].Harmless == "" {
			rows[i].Harmless = "what lies in view of the home may be a bait; the user's own holds a token"
		}
	}
	return withMeaning(withTraces(rows))
}

// readTheHome are rows that read names where a launcher may lay baits. What is
// read there is searched for the tokens of the real files.
var readTheHome = []string{"LNK-008", "LNK-009", "PTH-010c", "DNY-011g", "CRD-001", "CRD-003", "CRD-007", "CRD-009", "CRD-010", "CRD-012", "CRD-018"}
