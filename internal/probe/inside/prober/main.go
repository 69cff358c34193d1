//go:build linux

// Command prober runs one probe action inside a sandbox.
package main

import (
	"os"

	"holdfast.dev/holdfast/internal/probe/inside"
)

func main() { os.Exit(inside.Main(os.Args, os.Stdout)) }
