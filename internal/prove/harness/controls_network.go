//go:build linux

package harness

// networkControls returns the parts of a decision about a connection. They are
// switched off by giving the run wider rules than the row asked for.
func networkControls() []Control {
	return []Control{
		{Name: "names", Omit: []string{"names"}, Root: true, User: true, Network: true,
			Rows: []string{"NET-006c", "NET-015", "DNS-004", "PXY-018"}},
		{Name: "addresses at the dial", Omit: []string{"addresses"}, Root: true, User: true, Network: true,
			Rows: []string{"DNS-008", "DNS-008b", "DNS-009", "MET-015"}},
		{Name: "what is said must confirm the destination", Omit: []string{"confirmation"}, Root: true, User: true, Network: true,
			Rows: []string{"NET-016b", "PXY-006b", "PXY-007", "PXY-008", "PXY-010", "PXY-013"}},
		{Name: "methods and paths", Omit: []string{"requests"}, Root: true, User: true, Network: true,
			Rows: []string{"PXY-015b", "PXY-016", "EXF-001", "EXF-002"}},
		{Name: "inspection", Omit: []string{"inspection"}, Root: true, User: true, Network: true,
			Rows: []string{"PXY-007b"}},
		{Name: "placeholders", Omit: []string{"placeholders"}, Root: true, User: true, Network: true,
			Rows: []string{"PXY-026", "PXY-026b", "PXY-026c", "PXY-026e", "PXY-025b"}},
		{Name: "answers made on the spot", Network: true,
			Why: "the name server has nothing that it could ask: there is no switch that makes it forward"},
		{Name: "certificates of upstream servers", Network: true,
			Why: "the client of the supervisor has no setting to accept any certificate; PXY-031 shows that it refuses one"},
	}
}
