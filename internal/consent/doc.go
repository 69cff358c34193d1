// Package consent keeps what waits for a human's answer. An attempt that a rule
// of consent is about becomes a request, which is answered, times out or ends
// with the run; an answer becomes a grant, which names exactly what it covers,
// is used up and expires. All of it is recorded before it has an effect.
//
// The package knows neither the policy nor how humans are notified: its callers
// ask, and answers come to it signed. [New] makes the [Queue] of a run. Below it:
//
//	rules  what needs an answer: conditions over attempts, and ready sets of them
//	gate   joins both to a run: holds the attempt, asks, and lets it go on
package consent
