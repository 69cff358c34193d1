// Package state copies the settings of an agent program into the private home of
// a run, and collects at the end what the agent changed in its copies, for the
// user to apply or to drop.
//
// A run calls New before the launch, Agent.AddTo for the launch, Agent.OpenHome
// when the view is complete, and Agent.Collect when all processes inside have
// ended. Commands list pending changes with Pending, judge them with ObeyedAmong,
// and apply them to the user's home with Changes.Apply. Data from inside is read
// by descriptor, through no link, with a budget; names from inside are never used
// as file names outside.
//
// The package does not know which agents there are: a preset says what is copied.
// It starts nothing, and decides nothing for the user.
package state
