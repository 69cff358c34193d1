//go:build linux

package probe

import "slices"

// All is every row, class by class.
func All() []Row {
	return slices.Concat(
		linksRows(),
		pathsRows(),
		deniesRows(),
		procRows(),
		mountsRows(),
		handlesRows(),
		racesRows(),
		socketsRows(),
		terminalRows(),
		processRows(),
		syscallsRows(),
		privilegeRows(),
		environmentRows(),
		credentialsRows(),
		gitRows(),
		deferredRows(),
		exhaustionRows(),
		supervisorRows(),
		archivesRows(),
		egressRows(),
		netRows(),
		dnsRows(),
		metadataRows(),
		proxyRows(),
		channelsRows(),
	)
}
