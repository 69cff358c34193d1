//go:build linux

package targets

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// Holdfast is this product, as a binary.
type Holdfast struct {
	Path  string
	Extra []string // flags added to every run, for ablation
	// Omit are flags for every verb that changes something, for ablation.
	Omit []string
	Log  string // the binary whose verb log reads the records; "" for Path
	// Unrecorded says that Extra turns the record off, so that no trace is
	// requested.
	Unrecorded bool
	// Server says that the command is a server of tools, which the gateway
	// starts.
	Server bool
}

// Name implements [probe.Target].
func (Holdfast) Name() string { return "holdfast" }

// Run implements [probe.Target].
func (h Holdfast) Run(ctx context.Context, w *probe.World, c probe.Command, argv []string) probe.Observation {
	line, err := h.line(w, c, argv)
	if err != nil {
		return probe.Observation{Err: err}
	}
	o := probe.Start(ctx, w, c, line, nil)
	// A command may exit with 125 too, but then it has printed something.
	o.Refused = o.Exit == 125 && len(o.Stdout) == 0 && len(o.Stderr) > 0
	return o
}

func (h Holdfast) line(w *probe.World, c probe.Command, argv []string) ([]string, error) {
	args := []string{h.Path, "run"}
	if h.Server {
		args = []string{h.Path, "mcp", "run"}
	}
	args = slices.Concat(args, []string{"--workspace", w.Work()}, h.Extra)
	for _, p := range c.Options.Read {
		args = append(args, "--ro", w.Path(p))
	}
	for _, p := range c.Options.Write {
		args = append(args, "--rw", w.Path(p))
	}
	for _, p := range c.Options.Hide {
		args = append(args, "--hide", strings.TrimPrefix(w.Path(p), w.W))
	}
	for _, e := range c.Options.Env {
		args = append(args, "--env", e)
	}
	if sections := limitsYAML(c.Options) + networkYAML(c.Options); sections != "" {
		policy := w.B + "/policy-" + rand.Text() + ".yaml"
		if err := os.WriteFile(policy, []byte("version: 1\nextends: local\n"+sections), 0o644); err != nil {
			return nil, err
		}
		args = append(args, "--policy", policy)
	}
	return append(append(args, "--"), argv...), nil
}

// If Holdfast were no Recorder, no trace would be requested, and nothing be
// unseen.
var _ probe.Recorder = Holdfast{}

// KeepsRecord implements [probe.Recorder].
func (h Holdfast) KeepsRecord() bool { return !h.Unrecorded }

// Program implements [probe.Movable].
func (h Holdfast) Program() (string, error) { return h.Path, nil }

// At implements [probe.Movable].
func (h Holdfast) At(path string) probe.Target {
	h.Path = path
	return h
}

// WithPolicy implements [probe.Policied].
func (h Holdfast) WithPolicy(path string) probe.Target {
	h.Extra = []string{"--policy", path}
	return h
}

// With implements [probe.Flagger].
func (h Holdfast) With(flags ...string) probe.Target {
	h.Extra = slices.Concat(h.Extra, flags)
	return h
}

func limitsYAML(o probe.Options) string {
	var b strings.Builder
	for _, l := range []struct {
		name  string
		value int64
		unit  string
	}{
		{"memory", o.Memory, "B"}, {"processes", o.Processes, ""}, {"files", o.Files, ""},
		{"filesize", o.FileSize, "B"}, {"disk", o.Disk, "B"}, {"time", int64(o.Time / time.Millisecond), "ms"},
	} {
		if l.value != 0 {
			fmt.Fprintf(&b, "  %s: %d%s\n", l.name, l.value, l.unit)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "limits:\n" + b.String()
}

func networkYAML(o probe.Options) string {
	var b strings.Builder
	list := func(v any) string {
		return strings.ReplaceAll(strings.Trim(fmt.Sprintf("%q", v), "[]"), "\" \"", "\", \"")
	}
	for _, r := range o.Reach {
		fmt.Fprintf(&b, "    - {host: %q, ports: [%s], kind: %s", r.Host, strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Ports), " ", ", "), "[]"), r.Kind)
		for _, part := range []struct {
			name, value string
			given       bool
		}{
			{"methods", "[" + list(r.Methods) + "]", len(r.Methods) > 0}, {"paths", "[" + list(r.Paths) + "]", len(r.Paths) > 0},
			{"credential", r.Credential, r.Credential != ""}, {"internal", "true", r.Internal}, {"inspect", "true", r.Inspect},
		} {
			if part.given {
				fmt.Fprintf(&b, ", %s: %s", part.name, part.value)
			}
		}
		b.WriteString("}\n")
	}
	out := ""
	if b.Len() > 0 {
		out = "  allow:\n" + b.String()
	}
	if len(o.HostPorts) > 0 {
		out += "  host-ports: " + strings.ReplaceAll(fmt.Sprint(o.HostPorts), " ", ", ") + "\n"
	}
	if out != "" {
		out = "network:\n" + out
	}
	for i, s := range o.Secrets {
		if i == 0 {
			out += "credentials:\n"
		}
		out += fmt.Sprintf("  - {name: secret%d, source: {env: %s}, hosts: [%s], header: %q, env: %s}\n", i, s.Env, s.Host, s.Header, s.Env)
	}
	return out
}
