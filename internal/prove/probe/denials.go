//go:build linux

package probe

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// mostDenials limits what is kept of a row with very many attempts.
const mostDenials = 200

// varying matches what differs between runs in the name of an attempt:
// hexadecimal nonces, ids of runs, process ids, ports, addresses.
var varying = pattern(`\b([0-9]{8}T[0-9]{6}-)?[0-9a-f]{8,}\b|\b[0-9]{3,}\b`)

// pattern compiles an expression when it is first needed: every start of the
// launcher includes this package.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// denials returns how attempts failed, in a form that two runs can be compared
// by.
func (w *World) denials(reports []inside.Report) []string {
	var names []string
	for _, r := range w.roots() {
		names = append(names, r.path, r.name)
	}
	paths := strings.NewReplacer(names...)
	seen := map[string]bool{}
	for _, r := range reports {
		if r.Phase != "" || r.Control || len(seen) == mostDenials {
			continue
		}
		how := r.Errno
		switch {
		case r.Done:
			how = "worked"
		case how == "":
			how = "failed"
		}
		seen[varying().ReplaceAllString(paths.Replace(r.Attempt), "N")+": "+how] = true
	}
	var out []string
	for d := range seen {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}
