// Command holdfast runs AI coding agents, and everything they start, inside a
// boundary that holds when the agent is hostile.
package main

import (
	"os"

	"holdfast.dev/holdfast/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
