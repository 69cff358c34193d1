package sys

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Indices of what StatFields returns (proc_pid_stat(5), whose count begins two
// before).
const (
	StatState    = iota // a letter: R, S, D, Z, T, ...
	StatParent          // process id
	StatGroup           // process group id
	StatSession         // session id
	StatStarted  = 19   // ticks since the machine was started
	StatResident = 21   // pages
)

// StatusField returns the words that the text of a status file of /proc has under a
// name (proc_pid_status(5)); none for a name that it does not have.
func StatusField(status []byte, name string) []string {
	_, rest, _ := bytes.Cut(status, []byte("\n"+name+":"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return strings.Fields(string(line))
}

// StatFields reads the fields of a process behind its name, which may hold
// anything, brackets and spaces too. dir is that of the process, such as
// /proc/PID. There are at least as many as have an index here.
func StatFields(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= StatResident {
		return nil, fmt.Errorf("%s/stat has %d fields after the name: %w", dir, len(fields), os.ErrInvalid)
	}
	return fields, nil
}
