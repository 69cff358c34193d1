//go:build !linux

package references

import "holdfast.dev/holdfast/internal/floor/command"

// systemTopics are the tables that exist on Linux alone.
func systemTopics() []command.Topic { return nil }
