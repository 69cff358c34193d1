// Package syslog writes the header of a message of RFC 5424.
package syslog

import (
	"fmt"
	"os"
	"time"
)

// Header returns the header of a message of RFC 5424 (section 6.2), which ends
// with the MSGID. The priority is facility*8+severity; the application is
// holdfast and this process. host and id may be any text: see [Field].
func Header(priority int, at time.Time, host, id string) string {
	return fmt.Sprintf("<%d>1 %s %s holdfast %d %s", priority,
		at.Format("2006-01-02T15:04:05.000000Z07:00"), Field(host, 255), os.Getpid(), Field(id, 32))
}

// Field returns s as a field of a header, which takes only printable ASCII
// without spaces: at most n bytes of it, with "_" for each that is not allowed,
// and "-", the NILVALUE, for an empty one. Headers of HTTP take it too, within
// quotes as well, for '"' and '\' become "_".
func Field(s string, n int) string {
	b := []byte(s[:min(len(s), n)])
	for i, c := range b {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "-"
	}
	return string(b)
}
