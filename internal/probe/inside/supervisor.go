//go:build linux

package inside

import (
	"fmt"
	"os"
	"os/exec"
	"slices"

	"golang.org/x/sys/unix"
)

func supervisorActions() map[string]Action {
	return map[string]Action{
		"measure": measure,
	}
}

// rest is the command line after "--", for actions that start a launcher.
func rest() []string { return os.Args[slices.Index(os.Args, "--")+1:] }

// measure starts the rest of the command line and says at the end how much
// memory the largest process of it had.
func measure(*Probe) {
	argv := rest()
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &usage); err == nil {
		fmt.Fprintf(os.Stderr, "\nlargest process KiB %d\n", usage.Maxrss)
	}
	if err != nil && c.ProcessState == nil {
		os.Exit(124)
	}
	os.Exit(c.ProcessState.ExitCode())
}
