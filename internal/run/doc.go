// Package run is one run from plan to teardown. It plugs the parts together:
// the workspace is scanned, the backend starts the command, the streams are
// relayed, and when everything inside is dead the workspace is settled.
package run
