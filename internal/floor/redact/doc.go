// Package redact takes secrets out of what is written down: those that it is
// given (Hold), in the forms in which programs write them, and what looks like a
// secret by its own shape or by its place. A mark replaces each, the same for the
// same secret, so that records can be joined.
//
// What is masked by place is kept short on purpose. A program must not be able to
// hide a part of a command line from the record by calling it a password: such a
// value ends where a shell would begin something new.
package redact
