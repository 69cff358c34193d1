// Package supervise records what a command asks of the kernel, from outside: system
// calls that the filter hands over (seccomp user notification), and look-ups that leave
// the view. It watches. What may continue is decided by the boundary, which holds
// without this package, and no permission rests on what was read from the memory of a
// process: another thread may have changed it since. What the package does decide is
// safe to decide: a call that the filter refuses is answered with an error whatever its
// arguments, and so is every call when the record cannot be written.
//
// If the policy has rules of consent, calls also wait for a human. These rules ask for
// consent: what a program inside may do at most is limited by the boundary, which holds
// without them. An allowed change outside is made here, on the path that was shown, and
// its result handed in: nothing is read twice. An allowed execution continues in the
// kernel, which reads it again. Therefore the resulting program is compared with what
// was judged, before its first instruction if a rule could be about it (ptrace(2)), and
// at its first reported call if none could: until then it can compute, read, and write
// to what is already open. What a program reads later is not compared: its environment,
// its configuration, and the text of a script after its hash was taken.
//
// There are three ways in. New: a notification is received in serve.go, handled in
// supervisor.go, and exec.go, file.go, sock.go or lookup.go makes its event, which
// Supervisor.finish (supervisor.go) hands on to be recorded. resolve*.go
// finds where its path leads, foresee*.go predicts its outcome, compare*.go checks it;
// gate.go asks the rules of consent, hold.go waits for the answer, and outside*.go
// makes an allowed change on the host. NewTripwire: a look-up that leaves the view is a
// FUSE request (fuse_*.go), and tripwire_miss.go makes its event. NewLandlockAudit: the
// kernel's own records of denials.
package supervise
