//go:build !linux

package testenv

import "testing"

func again(t *testing.T, _ map[string]string) { t.Fatal(errNotLinux) }
