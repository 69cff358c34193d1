// Package state copies the settings of an agent program into the private home of a
// run, and takes out at the end what the agent changed in its copies, for the user to
// apply or to drop.
//
// A run calls New before the launch, Agent.AddTo for the launch, Agent.OpenHome when
// the view is complete, and Agent.Collect when everything inside is dead. Commands
// list what waits with Pending, judge it with ObeyedAmong, and put it into the user's
// home with Changes.Apply. What comes from inside is read by descriptor, through no
// link, with a budget; its names are never used as names of files outside.
//
// It does not know which agents there are: a preset says what is copied. It starts
// nothing, and decides nothing for the user.
package state
