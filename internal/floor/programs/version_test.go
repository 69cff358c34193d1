package programs

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program that was not given the time to answer is told from one that does not say.
func TestVersionSilent(t *testing.T) {
	program := filepath.Join(t.TempDir(), "agent")
	ask := func(does string) error {
		t.Helper()
		if err := Write(program, []byte("#!/bin/sh\n"+does+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, errors.New("no time left"))
		defer cancel()
		version, err := Version(ctx, program, "/usr/bin:/bin", nil)
		if version != "" || err == nil {
			t.Fatalf("%s: %q, %v", does, version, err)
		}
		return err
	}
	if err := ask("sleep 60"); !strings.HasSuffix(err.Error(), "no time left") {
		t.Errorf("one that is slow: %v", err)
	}
	if err := ask("echo hello"); !strings.HasSuffix(err.Error(), "it printed none") {
		t.Errorf("one that prints no version: %v", err)
	}
}
