package cli

import (
	"holdfast.dev/holdfast/internal/boundary/native"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/prove/exposure"
	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/trial"
)

// systemTopics are the tables that exist on Linux alone.
func systemTopics() []topic {
	return []topic{
		{"protected", "names in the workspace that the host would execute or obey", always(workspace.Reference)},
		{"syscalls", "what the system call filter answers", native.SyscallReference},
	}
}

// proveTopics are the tables of the examiner.
func proveTopics() []topic {
	return []topic{
		{"rows", "the rows of the escape matrix", always(probe.Reference)},
		{"agents", "what the scripted model asks an agent to do", always(trial.Reference)},
		{"exposure", "what prove exposure looks for", always(exposure.Reference)},
	}
}
