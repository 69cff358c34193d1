// Package gate is where a run asks before something happens: it joins the rules
// of consent of a policy, the queue of package consent in which a question
// waits, and the notices to humans about it.
//
// A run calls Open before its launch, passes Gate.Rules to what carries something out
// (system calls, connections, credentials, tool calls), and Gate.Queue to the control
// socket, over which a signed answer comes. Gate.Report lists at the end what was asked
// and denied. A policy without such rules has no Gate: its methods do nothing on nil.
//
// It does not know who carries out an attempt, and decides nothing itself: a
// rule does, or a human.
package gate
