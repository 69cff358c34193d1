// Package control is the socket by which a user's commands give orders to a run that is
// under way, such as to reload its policy or to take an answer. It is in the directory
// of the run's session, which no view shows.
//
// The supervisor calls Listen with a handler for each verb. A command finds the runs
// with Sessions, and sends one order with Exchange, or keeps a connection with Dial.
//
// An order is a line of JSON with its verb under "Do", and so is an answer, with an
// error under "Error". Their other fields are known only to the handlers. The package
// does not decide who may answer a question: it only refuses other users and processes
// in another user namespace.
package control
