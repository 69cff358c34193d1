//go:build !linux

package references

import "holdfast.dev/holdfast/internal/floor/command"

// systemTopics are the tables that exist on Linux alone: here there are none.
func systemTopics() []command.Topic { return nil }
