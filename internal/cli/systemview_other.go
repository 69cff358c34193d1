//go:build !linux

package cli

import "holdfast.dev/holdfast/internal/policy"

func systemView() []policy.PathRule { return nil }
