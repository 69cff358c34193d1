//go:build !linux

package cli

// systemVerbs are those of Linux alone.
func systemVerbs() []verb { return nil }
