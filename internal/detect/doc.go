// Package detect looks for signs of escape attempts: single events, counts of them,
// and events that come together, by rules that are data. It judges what was recorded
// and decides nothing: a missed alert changes nothing about what was refused.
//
// [New] makes an [Engine] of rules (load.go; those of the product are in rules/),
// and [Engine.Observe] takes events one by one. marks*.go classify an event beyond
// what it says: about a credential, outside the usual place, by a shell that reads
// from a pipe. correlate.go joins events of one process tree. Below it:
//
//	baseline  what a workspace usually does, and what is new in a run
//	honey     files that look like credentials and are watched
//	alert     where alerts go: files, webhooks, collectors, syslog
package detect
