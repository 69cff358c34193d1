// Package workspace finds the files of a working tree that the host would later
// execute or obey, so that a backend can make them read-only, and settles the
// tree after a run: what appeared under such a name is moved out of it, what is
// merely worth a look is listed.
//
// Everything it reads may have been arranged by an adversary. No symbolic link
// is followed while walking, nothing but regular files is opened for reading,
// and a path string never decides where something lies: descriptors do.
//
// protected.tsv is the list of names, builtin.go reads it, rules.go compiles it with what
// the policy adds, and match.go decides about a name (Rules.match). walk.go goes through a
// tree with them: scan.go lists what is protected before a run, settle.go looks after it
// (judge.go says by its content whether what appeared can do harm), and quiet.go says
// where that look is not needed.
package workspace
