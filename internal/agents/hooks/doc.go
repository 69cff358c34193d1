// Package hooks connects the hook systems of agent programs to the record: it
// edits their settings so that each tool call is reported, parses an agent's
// description of a call, sends it to the log, and returns the policy's decision
// in the agent's format.
//
// A hook only informs. The agent starts it, and decides whether to wait for it
// and to obey it: every agent goes on when its hook crashes, hangs or prints
// something unreadable. So a report never allows anything, and nothing that must
// be prevented depends on one; the boundary does that.
package hooks
