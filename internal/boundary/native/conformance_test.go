//go:build linux

package native

import (
	"os"
	"testing"

	"holdfast.dev/holdfast/internal/boundary/boundarytest"
)

// TestMain lets the test binary be the program that a test runs inside, or the
// supervisor that another one kills.
func TestMain(m *testing.M) {
	if status, asked := boundarytest.Inside(os.Args, os.Stdin, os.Stdout); asked {
		os.Exit(status)
	}
	if supervisor, asked := supervisors[os.Args[0]]; asked {
		os.Exit(supervisor(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	boundarytest.Run(t, boundarytest.Subject{Backend: &Backend{}, Collect: Collect})
}

// supervisors are the programs that the test binary can be, by argv[0].
var supervisors = map[string]func(args []string) int{}
