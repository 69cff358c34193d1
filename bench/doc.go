// Command bench measures what Holdfast costs: the same commands bare, in
// bubblewrap with the same view of files, and under `holdfast run` with and
// without the record, in turn within one run, so that variations of the machine
// affect all of them alike. It judges the goals of the project and writes them
// with the machine and the versions to bench/RESULTS.md, part by part: each can
// be measured by itself (-only), and without -only the parts that take long are
// left out (unless -all).
//
// It is not a test: nothing here passes or fails by time. The measured programs
// run as an ordinary user, because that is how Holdfast is used; parts whose name
// ends in -root run as root.
package main
