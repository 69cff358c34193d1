//go:build linux

package targets

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/prove/probe"
)

var codexSpec = spec{
	name: "codex", install: "tools/peers DIR codex, then: export PATH=DIR/bin:$PATH",
	version: []string{"--version"}, locate: codexProgram, call: codexCall,
	refused: refusedByPrefix("Error: ", "error: ", "thread 'main'", "bwrap: "),
}

// codexProgram follows the npm package's JavaScript wrapper to the static
// program, which is in a separate package for each platform.
func codexProgram(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("target codex: %w", err)
	}
	if filepath.Ext(real) != ".js" {
		return real, nil
	}
	pkg := filepath.Dir(filepath.Dir(real))
	for _, pattern := range []string{"../codex-linux-*/vendor/*/bin/codex", "node_modules/@openai/codex-linux-*/vendor/*/bin/codex", "vendor/*/bin/codex"} {
		if found, _ := filepath.Glob(filepath.Join(pkg, pattern)); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", hinted{fmt.Errorf("target codex: %w: there is no program for this platform beside %s", ErrNotHere, real),
		"npm install with its optional dependencies: tools/peers DIR codex"}
}

// codexCall is `codex sandbox` with the profile of the manual's page
// "Permissions" (developers.openai.com/codex/permissions): the minimal system
// paths readable, the workspace writable, environment files denied, no network;
// and with the narrowest environment for commands ("Configuration reference",
// shell_environment_policy). Its older sandbox_mode workspace-write is wider: it
// reads the whole disk and writes /tmp.
func codexCall(p Peer, w *probe.World, c probe.Command, run invocation) (call, error) {
	o := c.Options
	if err := missingOption(o, "read write hide env terminal"); err != nil {
		return call{}, err
	}
	roots := []string{`"."="write"`, `"**/*.env"="deny"`}
	for _, path := range expandPaths(w, o.Hide) {
		rel, err := filepath.Rel(w.W, path)
		if err != nil || strings.HasPrefix(rel, "..") {
			return call{}, fmt.Errorf("hiding %s: %w", path, probe.ErrUnsupported)
		}
		roots = append(roots, strconv.Quote(rel)+`="deny"`)
	}
	rules := []string{`":minimal"="read"`, `":workspace_roots"={` + strings.Join(roots, ",") + `}`}
	// It executes itself again inside, so its package must be visible.
	rules = append(rules, strconv.Quote(filepath.Dir(filepath.Dir(p.Path)))+`="read"`)
	for _, path := range expandPaths(w, o.Read) {
		rules = append(rules, strconv.Quote(path)+`="read"`)
	}
	for _, path := range expandPaths(w, o.Write) {
		rules = append(rules, strconv.Quote(path)+`="write"`)
	}
	var given []string
	for _, e := range o.Env {
		name, value, with := strings.Cut(e, "=")
		if !with {
			value = valueOf(name, w.Env)
		}
		given = append(given, strconv.Quote(name)+"="+strconv.Quote(value))
	}
	args := []string{p.Path, "sandbox", "--permission-profile", "probe", "--cd", w.W,
		"-c", "permissions.probe.filesystem={" + strings.Join(rules, ",") + "}",
		"-c", "permissions.probe.network.enabled=false", "-c", `shell_environment_policy.inherit="core"`}
	if len(given) > 0 {
		args = append(args, "-c", "shell_environment_policy.set={"+strings.Join(given, ",")+"}")
	}
	args = append(args, "--")
	// Its state is kept out of the home, where rows look for unexpected files;
	// the variable is documented in the manual ("Environment variables").
	state := filepath.Join(w.B, "codex-"+run.name)
	return call{argv: append(args, run.argv...), env: []string{"CODEX_HOME=" + state}, dirs: []string{state}}, nil
}
