package programs

import (
	"fmt"
	"os/exec"
	"sync"
	"testing"
)

// A program that was just written can be executed at once, whatever else forks.
func TestWrite(t *testing.T) {
	const writers, times = 8, 100
	dir := t.TempDir()
	var done sync.WaitGroup
	for writer := range writers {
		done.Go(func() {
			for i := range times {
				script, copied := fmt.Sprintf("%s/%d-%d", dir, writer, i), fmt.Sprintf("%s/%d-%d-copied", dir, writer, i)
				if err := Write(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
					t.Error(err)
				}
				if err := Copy(script, copied); err != nil {
					t.Error(err)
				}
				for _, program := range []string{script, copied} {
					if err := exec.Command(program).Run(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	done.Wait()
}
