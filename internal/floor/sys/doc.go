// Package sys has the kernel calls that several rooms make: files opened safely,
// inotify, sockets, terminals, what /proc reports of a process, ids of a thread. A
// wrapper retries EINTR where the manual page allows it, and returns the error with the
// name of the call.
package sys
