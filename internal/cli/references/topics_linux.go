package references

import (
	"holdfast.dev/holdfast/internal/boundary/native"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/floor/command"
)

// systemTopics are the tables that exist on Linux alone.
func systemTopics() []command.Topic {
	return []command.Topic{
		{Name: "protected", About: "names in the workspace that the host would execute or obey", Text: command.Always(workspace.Reference)},
		{Name: "syscalls", About: "what the system call filter answers", Text: native.SyscallReference},
	}
}
