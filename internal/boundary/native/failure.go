//go:build linux

package native

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// failureBehind returns the failure of a step when that is why the supervisor could
// not do its part: the first process has ended and reported why.
func (l *launch) failureBehind(err error, control *os.File) error {
	for {
		m, rerr := receive(control)
		if rerr != nil {
			return err
		}
		if m.kind == msgFailed {
			return l.stepError(m)
		}
	}
}

// stepError turns the failure of a step into words.
func (l *launch) stepError(m message) error {
	if err := asReplaced(l.builder.name(m.fields[0])); err != nil {
		return err
	}
	step := l.builder.failure(m)
	if step.Err == 0 {
		return fmt.Errorf("launch %s was not refused or gave %d: the boundary does not hold on this host", step.Step, m.fields[1])
	}
	// The number of user namespaces is a setting of the host (ENOSPC), all else that
	// can be used up is not.
	if step.Err != unix.ENOSPC && boundary.Exhausted(step) != "" {
		return step
	}
	if g := guaranteeOf(l.builder.name(m.fields[0])); g != "" {
		return gap(g, step.Error())
	}
	return step
}

// failure reads the message of an operation that failed. Err is 0 where the
// result is no error number.
func (b *builder) failure(m message) *StepError {
	step, result := &StepError{Step: b.describeOp(m.fields[0])}, int64(m.fields[1])
	switch {
	case strings.HasSuffix(step.Step, acknowledged):
		step.Err = unix.Errno(-int32(result)) // the lower half, see netlink
	case result < 0:
		step.Err = unix.Errno(-result)
	}
	return step
}

// guaranteeOf says which guarantee a step is there for, when its failure means
// that the host does not keep it; "" for the others.
func guaranteeOf(step string) policy.Guarantee {
	for _, s := range []struct {
		prefix    string
		guarantee policy.Guarantee
	}{
		{"clone into new namespaces", policy.Namespaces},
		{"deny setgroups", policy.Namespaces},
		{"map user id", policy.Namespaces},
		{"map group id", policy.Namespaces},
		{"bring up loopback", policy.Namespaces},
		{"make mounts private", policy.Namespaces},
		{"proc: ", policy.PrivateProc},
		{"layers of ", policy.CopyLayers},
		{"landlock ruleset", policy.Landlock},
		{"landlock restrict", policy.Landlock},
		{"install filter with a listener", policy.Recording},
		{"install filter", policy.Seccomp},
	} {
		if strings.HasPrefix(step, s.prefix) {
			return s.guarantee
		}
	}
	return ""
}

// StepError says which step of the launch failed. Nothing was executed.
type StepError struct {
	Step string
	Err  unix.Errno
}

func (e *StepError) Error() string { return fmt.Sprintf("launch %s: %v", e.Step, e.Err) }
func (e *StepError) Unwrap() error { return e.Err }

// Hint names the likely way to mend it.
func (e *StepError) Hint() string {
	return "run 'holdfast doctor' to see what this machine can enforce"
}
