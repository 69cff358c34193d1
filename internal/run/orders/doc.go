// Package orders is what a user's commands tell a run that is under way, over the
// control socket in the directory of its session (package control): answers about
// approvals, and to load the policy again.
//
// A run calls Listen. The command calls Reload, which tells every running session of
// this user; package consent has the commands about approvals.
//
// It decides nothing: the queue of consent checks an answer, and the run its new policy.
package orders
