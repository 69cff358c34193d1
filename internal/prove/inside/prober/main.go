//go:build linux

// Command prober runs one probe action inside a sandbox.
package main

import (
	"os"

	"holdfast.dev/holdfast/internal/prove/inside"
)

func main() { os.Exit(inside.Main(os.Args, os.Stdout)) }
