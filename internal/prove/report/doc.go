// Package report has the result of a run of the escape matrix as data, and all
// its output formats: for a terminal, as JSON, JUnit, SARIF and a single HTML
// page; a baseline to commit, and the changes against one; several runs side by
// side; and which control holds which row.
//
// It judges nothing. Verdicts come from the package that plays the rows, and most
// texts come from sandboxed programs, so every format treats every string as
// hostile. The output depends only on the data: the order is that of classes and
// IDs, and no format reads the clock, the host or the environment.
package report
