//go:build linux

package run

import "holdfast.dev/holdfast/internal/floor/event"

// consents is what the rules of consent say to whatever holds something back. The
// zero value has no rule.
type consents struct {
	gate  event.Gate
	wants func(event.Kind) bool    // whether any rule can be about a kind; nil that each may be
	asks  func(event.Kind) bool    // whether a human could be asked about a kind at this moment; nil that he always can
	may   func(event.Attempt) bool // whether a rule could be about an attempt of which not all is known; nil that one could
	hosts func() bool              // whether a run that is about to begin may ask about hosts that no rule names; nil that it may
}

// about says whether any rule can be about a kind.
func (c consents) about(k event.Kind) bool { return c.gate != nil && (c.wants == nil || c.wants(k)) }

// asksHosts says whether connections have to be intercepted for what may be asked.
func (c consents) asksHosts() bool {
	return c.about(event.KindConnect) && (c.hosts == nil || c.hosts())
}
