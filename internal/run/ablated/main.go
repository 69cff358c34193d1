//go:build linux

// Command ablated is Holdfast with controls switched off, to show what each of
// them holds. It is a build for tests and for 'holdfast prove ablate': the
// product itself has no way to switch one off.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/boundary/native"
	"holdfast.dev/holdfast/internal/network"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/run"
)

const name = "holdfast-ablated"

func main() { os.Exit(runAblated(os.Args[1:])) }

// line is what the command line says.
type line struct {
	options policy.Options
	omit    []string
	rungs   []boundary.Rung
	level   string // of the record; "" for none
	argv    []string
}

func parse(args []string) (line, error) {
	var l line
	set := func(flag, key string) func(string) error {
		return func(v string) error {
			k := key
			if key == "environment" {
				k = "environment.pass"
				if strings.Contains(v, "=") {
					k = "environment.set"
				}
			}
			l.options.Settings = append(l.options.Settings, policy.Setting{Flag: flag, Key: k, Value: v})
			return nil
		}
	}
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.StringVar(&l.options.Workspace, "workspace", "", "")
	f.StringVar(&l.options.Policy, "policy", "", "")
	f.Func("omit", "controls to leave out", func(v string) error { l.omit = append(l.omit, strings.Split(v, "+")...); return nil })
	f.Func("ro", "", set("--ro", "filesystem.read"))
	f.Func("rw", "", set("--rw", "filesystem.write"))
	f.Func("hide", "", set("--hide", "workspace.hide"))
	f.Func("output", "", set("--output", "workspace.outputs"))
	f.Func("env", "", set("--env", "environment"))
	f.BoolFunc("review", "", func(string) error {
		l.options.Settings = append(l.options.Settings, policy.Setting{Flag: "--review", Key: "workspace.mode", Value: "review"})
		return nil
	})
	f.Func("record", "keep a record", func(v string) error { l.level = v; return set("--record", "record.level")(v) })
	f.Func("rung", "the only interception method that may be used", func(v string) error { l.rungs = append(l.rungs, boundary.Rung(v)); return nil })
	err := f.Parse(args)
	l.argv = f.Args()
	return l, err
}

// runAblated is `holdfast run` with one more flag, and without what rows do not
// need.
func runAblated(args []string) int {
	if len(args) == 2 && args[0] == run.SettleCommand {
		return report(run.Settle(context.Background(), args[1]))
	}
	dir, err := os.Getwd()
	if err != nil {
		return report(err)
	}
	if len(args) > 1 && args[0] == "review" {
		return report(runReview(dir, args[1:]))
	}
	l, err := parse(args[1:])
	if err != nil {
		return 125
	}
	if l.options.Host, err = policy.ThisHost(os.Environ(), dir); err != nil {
		return report(err)
	}
	if slices.Contains(l.omit, "named-links") {
		l.options.Settings = resolveLinks(l.options.Settings)
	}
	effective, err := policy.Load(l.options)
	if err != nil {
		return report(err)
	}
	plan, err := policy.Compile(effective, l.options.Host)
	if err != nil {
		return report(err)
	}
	t := &run.Task{Plan: widen(plan, l.omit), Argv: l.argv, State: l.options.Host.State, Rungs: l.rungs}
	if l.level != "" && !slices.Contains(l.omit, "record") {
		t.Log, t.Keys = filepath.Join(t.State, "log"), filepath.Join(t.State, "keys")
	}
	if slices.Contains(l.omit, "names") {
		t.Learn = network.Through
	}
	return ablatedRun(t, l.omit)
}

// resolveLinks replaces links in settings by what they lead to, wherever that is.
func resolveLinks(settings []policy.Setting) []policy.Setting {
	for i, s := range settings {
		if real, err := filepath.EvalSymlinks(s.Value); err == nil && strings.HasPrefix(s.Key, "filesystem.") {
			settings[i].Value = real
		}
	}
	return settings
}

// widen switches off what is a part of the plan.
func widen(plan policy.Plan, omit []string) policy.Plan {
	if slices.Contains(omit, "view") {
		beside, _ := filepath.Glob(filepath.Dir(plan.Workspace) + "/*")
		for _, path := range beside {
			if st, err := os.Lstat(path); err == nil && st.IsDir() && path != plan.Workspace && path != plan.Identity.Home {
				plan.Paths = append(plan.Paths, policy.PathRule{Path: path, Access: policy.Write})
			}
		}
	}
	if slices.Contains(omit, "state") { // as if a rule had put the launcher's own into view
		state := filepath.Join(plan.Identity.Home, ".local/state/holdfast")
		plan.Paths = append(plan.Paths, policy.PathRule{Path: state, Access: policy.Write})
	}
	if slices.Contains(omit, "environment") {
		plan.Env = nil
		for _, kv := range os.Environ() {
			name, value, _ := strings.Cut(kv, "=")
			plan.Env = append(plan.Env, policy.Env{Name: name, Value: value})
		}
	}
	if slices.Contains(omit, "hard-links") {
		plan.Accepted = append(plan.Accepted, policy.HardLinks)
	}
	plan.Review = plan.Review && !slices.Contains(omit, "review")
	plan.Allow = widenRules(slices.Clone(plan.Allow), omit)
	if slices.Contains(omit, "placeholders") {
		plan = handOver(plan)
	}
	return plan
}

// handOver gives the command the secrets themselves.
func handOver(plan policy.Plan) policy.Plan {
	for _, c := range plan.Credentials {
		for _, name := range c.Env {
			plan.Env = append(plan.Env, policy.Env{Name: name, Value: os.Getenv(c.Source.Value)})
		}
	}
	plan.Credentials = nil
	for i := range plan.Allow {
		plan.Allow[i].Credentials = nil
	}
	return plan
}

// widenRules switches off what is a part of the rules for destinations: what is
// looked at in a connection follows from them.
func widenRules(rules []policy.HostRule, omit []string) []policy.HostRule {
	for i := range rules {
		r := &rules[i]
		if slices.Contains(omit, "addresses") {
			r.Internal = true
		}
		if slices.Contains(omit, "requests") || slices.Contains(omit, "confirmation") {
			r.Methods, r.Paths = nil, nil
		}
		if slices.Contains(omit, "inspection") || slices.Contains(omit, "confirmation") {
			r.Inspect = false
		}
		if slices.Contains(omit, "confirmation") {
			r.Kind = policy.TCP
		}
	}
	return rules
}

func ablatedRun(t *run.Task, omit []string) int {
	exe, err := os.Executable()
	if err != nil {
		return report(err)
	}
	t.Backend, t.Executable = &native.Backend{Omit: append(omit, "attempts")}, exe
	t.Streams = run.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	result, err := t.Run(context.Background())
	for _, q := range result.Settled.Quarantined {
		if slices.Contains(omit, "quarantine") { // as if it had never been moved
			if err := os.Rename(string(q.Held), string(q.Path)); err != nil {
				return report(err)
			}
			continue
		}
		fmt.Fprintln(os.Stderr, "quarantined", q.Path)
	}
	for _, f := range result.Settled.Flagged {
		fmt.Fprintln(os.Stderr, f.Change, f.Path)
	}
	if err != nil {
		return report(err)
	}
	return result.Exit.Status()
}

func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, name+": error:", err)
	return 125
}
