// Package policy turns what a human wrote about a run (a profile, files, flags) into a
// Plan that a backend can enforce, and names the origin of each entry. It decides
// nothing about mechanisms and prints nothing: what cannot be parsed, resolved or kept
// is an error, never a smaller plan.
//
// Which names in a workspace are protected is decided in boundary/workspace; a policy
// adds some or releases some.
//
// The way of a policy: decode*.go reads a file, load.go and project.go put the sources
// one on top of another (Effective), compile.go makes a Plan of them, and plan.go says
// what a Plan may gain when the run begins (Plan.With). show.go and explain.go say what
// holds; propose*.go writes a policy of what was seen.
//
// Each section has files of its own, by its name: workspace, filesystem, network,
// environment, limits, tools, record, alerts, guarantees (the key without),
// credentials, consent (ask and deny), programs, approvals and agents (the presets).
// They contain the keys, then how they are written and checked, then their part of the
// plan, then what is shown and explained. The sections share keys.go (what a key is),
// values.go and addresses.go (how a single value is written), schema.go, errors.go,
// host.go, locate.go (which file a path is), hostfiles.go (what the command may neither
// read nor change) and exposed.go (what earlier runs could write to).
package policy
