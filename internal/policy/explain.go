package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Verdict answers one question about one object.
type Verdict struct {
	Allowed bool   `json:"allowed"`
	Private bool   `json:"private,omitempty"` // what is written goes to a layer that is dropped
	Why     string `json:"why"`               // a clause, for humans
	Rule    string `json:"rule,omitempty"`    // file:line or the name of a built-in part; "" where no rule allows it
	Add     string `json:"add,omitempty"`     // what would allow it; "" where nothing can or need be
}

// Answer is what Explain found.
type Answer struct {
	Query    string   `json:"query"`
	Kind     string   `json:"kind"`               // path, command or host
	Resolved string   `json:"resolved,omitempty"` // the path that the kernel found for it
	Read     *Verdict `json:"read,omitempty"`
	Write    *Verdict `json:"write,omitempty"`
	Execute  *Verdict `json:"execute,omitempty"`
	Connect  *Verdict `json:"connect,omitempty"`
}

// Allowed reports whether anything at all is.
func (a Answer) Allowed() bool {
	return slices.ContainsFunc([]*Verdict{a.Read, a.Write, a.Execute, a.Connect}, func(v *Verdict) bool {
		return v != nil && v.Allowed
	})
}

// Explain says what a command under p could do with query: a path, the name of
// a command, or a host. A text that could be several is a path when it exists
// or has a slash, then a command when PATH inside has it, then a host. The
// permissions of the files themselves come on top.
// names are those that are looked after when they appear in the workspace.
func Explain(p Plan, h Host, names []Reserved, query string) (Answer, error) {
	x := explainer{p, h, names}
	if err := checkQuery(query); err != nil {
		return Answer{}, err
	}
	a, err := x.explain(query)
	if err != nil {
		return a, err
	}
	return a, x.consent(&a)
}

// ExplainPath is Explain for a text that is a path, whatever it looks like.
func ExplainPath(p Plan, h Host, names []Reserved, query string) (Answer, error) {
	if err := checkQuery(query); err != nil {
		return Answer{}, err
	}
	x := explainer{p, h, names}
	a, err := x.file(query)
	if err != nil {
		return a, err
	}
	return a, x.consent(&a)
}

func checkQuery(query string) error {
	if query == "" || strings.ContainsAny(query, "\x00\n\r") {
		return fault(Origin{}, "", "cannot explain %q: empty, or with a NUL or a line break", printable(query))
	}
	return nil
}

type explainer struct {
	plan  Plan
	host  Host
	names []Reserved
}

func (x explainer) explain(query string) (Answer, error) {
	if strings.Contains(query, "/") && !strings.Contains(query, "://") || query == "~" || query == "." || query == ".." {
		return x.file(query)
	}
	if _, err := os.Lstat(filepath.Join(x.host.Dir, query)); err == nil {
		return x.file(query)
	}
	if found := x.search(query); found != "" {
		a, err := x.file(found)
		a.Query, a.Kind = query, "command"
		return a, err
	}
	if looksLikeHost(query) {
		return x.destination(query)
	}
	if path := x.searchOutside(query); path != "" {
		a, err := x.file(path)
		a.Query, a.Kind = query, "command"
		return a, err
	}
	return Answer{Query: query, Kind: "command", Execute: &Verdict{Why: "no directory of PATH inside has it, and none of yours"}}, nil
}

// search finds a command as the boundary does, in PATH inside.
func (x explainer) search(name string) string { return lookIn(variableIn(x.plan.Env, "PATH"), name) }

func (x explainer) searchOutside(name string) string { return lookIn(x.host.lookup("PATH"), name) }

func lookIn(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		full := filepath.Join(dir, name)
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return full
		}
	}
	return ""
}
