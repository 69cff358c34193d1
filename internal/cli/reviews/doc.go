// Package reviews is holdfast review: what a run changed, shown, decided and carried
// over. [Command] is the way in; [Waiting] says after a run that its changes wait, and
// [Changes] lists them for a report. What a change is, and how it is applied, is
// internal/review's.
package reviews
