//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: error: this system is not Linux, on which alone there is something to measure")
	os.Exit(1)
}
