// Package orders sends orders of a user's commands to a run that is under way, over the
// control socket in the directory of its session (package control): answers about
// approvals, and to reload the policy.
//
// A run calls Listen. The command calls Reload, which sends the order to every running
// session of this user; package consent has the commands about approvals.
//
// It decides nothing: the queue of consent checks an answer, and the run its new policy.
package orders
