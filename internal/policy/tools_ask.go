package policy

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/expr"
)

// AskTool says why a call of a tool would fail in a run of p: because of a path or a
// host among its arguments; "" if it need not. private are the trees that the run has
// its own version of: they cause no objection.
//
// It looks at names alone and opens no file, so that the caller learns nothing of the
// host, and, if resolve is not nil, at what a name leads to. The boundary decides on
// what a path really is; AskTool predicts that decision.
func (p Plan) AskTool(c ToolCall, private []string, resolve func(string) string) (reason, rule string) {
	if c.Server != "" || c.Cut { // the arguments of a server's tools are its own, also where they are called path
		return "", ""
	}
	for _, t := range argumentPaths(c) {
		path := t.path
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Cwd, path)
		}
		if path = filepath.Clean(path); !filepath.IsAbs(path) {
			continue
		}
		if resolve != nil {
			path = resolve(path)
		}
		if reason, rule := p.askPath(path, t.write, private); reason != "" {
			return printable(t.path) + " is " + reason, rule
		}
	}
	for _, host := range hostsOf(c) {
		if reason, rule := p.askHost(host); reason != "" {
			return printable(host) + " " + reason, rule
		}
	}
	return "", ""
}

// askPath says why a path cannot be read, or written.
func (p Plan) askPath(path string, write bool, private []string) (reason, rule string) {
	x := explainer{plan: p}
	if r, hides := x.findProtected(path, p.Hidden); hides {
		return "hidden as a secret", "secret " + r.Rule
	}
	if r, keeps := x.protected(path); keeps && write {
		return "protected: " + r.Reason, "protected path " + r.Rule
	}
	by := x.rule(path)
	switch {
	case by.Path != "" && by.Access == Hidden:
		return "hidden", by.Origin.String()
	case by.Path != "" && write && by.Access == Read:
		return "in view read-only", by.Origin.String()
	case by.Path != "":
		return "", ""
	}
	inside := func(trees []string) bool {
		return slices.ContainsFunc(trees, func(tree string) bool { return within(path, tree) })
	}
	switch {
	case inside(private):
		return "", ""
	case inside(systemTrees) && write:
		return "in view read-only", "system"
	case inside(systemTrees) || slices.ContainsFunc(p.Paths, func(r PathRule) bool { return within(r.Path, path) || r.At != "" && within(path, r.At) }) || within(p.Workspace, path):
		return "", "" // what leads to what is in view
	}
	return "not in view", ""
}

// askHost says why a host cannot be reached.
func (p Plan) askHost(host string) (reason, rule string) {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if address, err := netip.ParseAddr(name); name == "localhost" || err == nil && address.IsLoopback() {
		return "", "" // loopback inside is private
	}
	if slices.ContainsFunc(p.Allow, func(r HostRule) bool { return covers(r.Host, name) }) {
		return "", ""
	}
	return "is not a host that the policy allows", "network"
}

// argumentPath is a path among the arguments of a tool.
type argumentPath struct {
	path  string
	write bool
}

// pathArguments are how agents call a path that a tool of theirs is given.
var pathArguments = []string{"file_path", "filePath", "path", "notebook_path", "absolute_path", "dir_path", "file", "filename"}

// writers are parts of the names of tools that change what they are given.
var writers = []string{"write", "edit", "create", "replace", "patch", "insert", "delete", "move"}

// argumentPaths are the paths among the arguments of a call.
func argumentPaths(c ToolCall) (out []argumentPath) {
	arguments := expr.Arguments(c.Arguments)
	tool := strings.ToLower(c.Tool)
	write := slices.ContainsFunc(writers, func(w string) bool { return strings.Contains(tool, w) })
	for _, name := range pathArguments {
		if path := arguments[name]; path != "" && !strings.ContainsAny(path, "\x00\n\r") && !strings.Contains(path, "://") {
			out = append(out, argumentPath{path, write})
		}
	}
	if !strings.Contains(tool, "patch") {
		return out
	}
	for _, text := range arguments {
		for line := range strings.Lines(text) {
			for _, begin := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
				if path, is := strings.CutPrefix(strings.TrimRight(line, "\r\n"), begin); is && len(out) < 100 {
					out = append(out, argumentPath{path, true})
				}
			}
		}
	}
	return out
}

// hostsOf are the hosts that a call of a tool for the web is to reach.
func hostsOf(c ToolCall) (out []string) {
	tool := strings.ToLower(c.Tool)
	arguments := expr.Arguments(c.Arguments)
	words := []string{arguments["url"], arguments["uri"]}
	if strings.Contains(tool, "fetch") {
		words = append(words, strings.Fields(arguments["prompt"])...)
	}
	for _, word := range words {
		u, err := url.Parse(strings.Trim(word, `"'<>(),`))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || len(out) == 20 {
			continue
		}
		out = append(out, u.Hostname())
	}
	return out
}
