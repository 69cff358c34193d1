package redact

import "strings"

// pem masks the content of a private key. It ends with what no such content has;
// at is the first letter of BEGIN.
func (r *Redactor) pem(s string, at, free int) (hit, bool) {
	const begin, finish = "-----BEGIN ", "-----END "
	from := at - 5
	if from < free || !strings.HasPrefix(s[from:], begin) {
		return hit{}, false
	}
	label, _, ok := strings.Cut(s[from+len(begin):min(len(s), from+len(begin)+labelMost)], "-----")
	if !ok || !strings.HasSuffix(label, "PRIVATE KEY") && !strings.HasSuffix(label, "PRIVATE KEY BLOCK") {
		return hit{}, false
	}
	to := from + len(begin) + len(label) + 5
	for {
		next := pemLine(s, to)
		if next == to {
			break
		}
		to = next
	}
	if end := skipBreaks(s, to); strings.HasPrefix(s[end:], finish+label+"-----") {
		to = end + len(finish) + len(label) + 5
	}
	return hit{from, to, byShape, mark("private-key", s[from:to], sum(s[from:to]))}, true
}

// pemLeast is the fewest bytes of a line of a key that is not its last: a
// program hides little of a command line by writing it as one.
const pemLeast = 40

// pemLine returns the end of the line of a key that begins at s[at:], at if there is
// none. A line is long, or the last.
func pemLine(s string, at int) int {
	from := skipBreaks(s, at)
	for _, header := range []string{"Proc-Type: ", "DEK-Info: ", "Version: ", "Comment: "} {
		if strings.HasPrefix(s[from:], header) {
			if n := strings.IndexByte(s[from:min(len(s), from+100)], '\n'); n > 0 {
				return from + n
			}
		}
	}
	to := from
	for to < len(s) && base64ish.contains(s[to]) && s[to] != '-' {
		to++
	}
	if to-from >= pemLeast || to > from && strings.HasPrefix(s[skipBreaks(s, to):], "-----END ") {
		return to
	}
	return at
}

// skipBreaks passes over white space, also as it is written in JSON.
func skipBreaks(s string, at int) int {
	for at < len(s) {
		switch {
		case strings.IndexByte(" \t\r\n", s[at]) >= 0:
			at++
		case s[at] == '\\' && at+1 < len(s) && (s[at+1] == 'n' || s[at+1] == 'r' || s[at+1] == '\\'):
			at += 2
		default:
			return at
		}
	}
	return at
}
