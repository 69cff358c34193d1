// Package model is a stand-in for the model of an agent program: a server on
// loopback that speaks the wire formats of the providers and answers as a fully
// jailbroken model would, with the tool calls that a script names. It keeps no
// state between requests: the next step follows from the tool results in a
// request. So it behaves the same each time, with any agent, and also after a
// crash or in a resumed session.
//
// A script consists of abstract operations, such as a shell command or a file to
// write. Each request of an agent lists the tools that it offers, and the
// operation is resolved against that list: which tool, and the names of its
// arguments.
package model
