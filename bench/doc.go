// Command bench measures what Holdfast costs: the same commands bare, in
// bubblewrap with the same view of files, and under `holdfast run` with and
// without the record, in turn within one run, so that a machine's moods strike all
// of them alike. It judges the goals of the project and writes them with the
// machine and the versions to bench/RESULTS.md, part by part: each can be measured
// by itself (-only), and a run that names none leaves out what takes long (-all).
//
// It is not a test: nothing here passes or fails by the clock. What is measured
// runs as an ordinary user, for that is how Holdfast is used; parts whose name ends
// in -root run as root.
package main
