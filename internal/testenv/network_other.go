//go:build !linux

package testenv

import "testing"

func rerunInNetwork(t *testing.T, _ map[string]string) { t.Fatal(errNotLinux) }
