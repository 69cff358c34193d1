package summary

import (
	"errors"
	"slices"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/run"
)

// deniedError is a command that was not executed because it was denied.
type deniedError struct{ err error }

func (e *deniedError) Error() string { return "the command was denied, and nothing was executed" }
func (e *deniedError) Unwrap() error { return e.err }

// Hint is where to find who denied it, and by which rule.
func (e *deniedError) Hint() string {
	return "see what was asked: holdfast log query 'action.startsWith(\"approval.\")'"
}

// deniedCommand distinguishes a command that was denied from one that cannot be
// executed.
func deniedCommand(r run.Result, err error) error {
	if errors.Is(err, boundary.ErrNotExecutable) && slices.ContainsFunc(r.Asked, consent.Outcome.Denied) {
		return &deniedError{err}
	}
	return err
}

// missingProgram adds to the error about an agent that is not installed how to
// install it.
func missingProgram(plan policy.Plan, err error) error {
	if plan.Agent == nil || plan.Agent.Install == "" || !errors.Is(err, boundary.ErrNotFound) {
		return err
	}
	return &agentMissingError{err, "install " + plan.Agent.Title + ": " + plan.Agent.Install + "; 'holdfast agents' lists those that are found"}
}

// agentMissingError is a command that was not found, of a program that a preset
// knows.
type agentMissingError struct {
	error
	hint string
}

func (e *agentMissingError) Unwrap() error { return e.error }

// Hint is how to install it.
func (e *agentMissingError) Hint() string { return e.hint }

// Explain adds to an error of a run what a person can do about it: the command was
// denied, or the agent is not installed.
func Explain(plan policy.Plan, r run.Result, err error) error {
	return deniedCommand(r, missingProgram(plan, err))
}
