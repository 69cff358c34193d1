// Command holdfast-prove shows what a sandbox holds: it plays the escape matrix
// against Holdfast, another sandbox or a real agent program, and gives verdicts
// from outside.
package main

import (
	"os"

	"holdfast.dev/holdfast/internal/prove/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
