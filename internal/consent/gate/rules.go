//go:build linux

package gate

import "holdfast.dev/holdfast/internal/floor/event"

// Rules are the rules of consent for what carries something out. The zero value
// has none.
type Rules struct {
	event.Gate                           // judges an attempt; nil for no rule
	Wants       func(event.Kind) bool    // whether any rule can be about a kind; nil means that each may be
	CanAsk      func(event.Kind) bool    // whether a human could be asked about a kind at this moment; nil means always
	MayConcern  func(event.Attempt) bool // whether a rule could be about an attempt that is not fully known; nil means that one could
	CanAskHosts func() bool              // whether a run that is about to begin may ask about hosts that no rule names; nil means that it may
}

// Concern reports whether any rule can be about a kind.
func (r Rules) Concern(k event.Kind) bool { return r.Gate != nil && (r.Wants == nil || r.Wants(k)) }

// Intercept reports whether connections have to be intercepted for what may be asked.
func (r Rules) Intercept() bool {
	return r.Concern(event.KindConnect) && (r.CanAskHosts == nil || r.CanAskHosts())
}
