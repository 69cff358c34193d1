package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// action is one attack step.
type action struct {
	id   string // in its collection; key of a line of reasons.txt
	name string
	argv []string
	show []string // directories of the host that it needs to see
	not  string   // why it cannot be run; "" if it can
}

// falco lists the actions of the event generator of a checkout, which is built in
// into. Actions on the Kubernetes audit log need a cluster and are not listed.
func falco(ctx context.Context, checkout, into string) ([]action, error) {
	program := filepath.Join(into, "event-generator")
	if err := buildFalco(ctx, checkout, into, program); err != nil {
		return nil, fmt.Errorf("building the event generator of %s: %w", checkout, err)
	}
	out, err := exec.CommandContext(ctx, program, "list", "--all").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the actions of %s: %w", checkout, err)
	}
	var all []action
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "syscall.") {
			all = append(all, action{id: name, name: name, show: []string{program},
				argv: []string{program, "run", "--all", "--sleep", "0s", "^" + regexp.QuoteMeta(name) + "$"}})
		}
	}
	return all, nil
}

// inContainer is the function with which the event generator detects a container:
// by the command line of the first process, which the view hides.
const inContainer = "func inContainer() bool {\n"

// buildFalco builds it so that it takes the boundary for a container, which a
// third of its actions require. The checkout is not changed.
func buildFalco(ctx context.Context, checkout, into, program string) error {
	checkout, err := filepath.Abs(checkout)
	if err != nil {
		return err
	}
	file := filepath.Join(checkout, "pkg", "runner", "runner.go")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), inContainer) {
		return fmt.Errorf("%s has no %q any more", file, inContainer)
	}
	other := filepath.Join(into, "runner.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: other}})
	if err != nil {
		return err
	}
	changed := strings.Replace(string(text), inContainer, inContainer+"\treturn true\n}\n\nfunc byCommandLine() bool {\n", 1)
	for name, data := range map[string]string{other: changed, other + ".json": string(overlay)} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			return err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-overlay", other+".json", "-o", program, ".")
	build.Dir = checkout
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// technique is the used part of a file of Atomic Red Team.
type technique struct {
	ID    string `yaml:"attack_technique"`
	Tests []struct {
		Name      string   `yaml:"name"`
		GUID      string   `yaml:"auto_generated_guid"`
		Platforms []string `yaml:"supported_platforms"`
		Inputs    map[string]struct {
			Default any `yaml:"default"`
		} `yaml:"input_arguments"`
		Executor struct {
			Name    string `yaml:"name"`
			Command string `yaml:"command"`
		} `yaml:"executor"`
	} `yaml:"atomic_tests"`
}

// atomic lists Atomic Red Team's tests for Linux, with the defaults of their
// arguments.
func atomic(dir string) ([]action, error) {
	atomics, err := filepath.Abs(filepath.Join(dir, "atomics"))
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(atomics, "T*", "T*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there are no tests in %s", atomics)
	}
	var all []action
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var t technique
		if err := yaml.Unmarshal(text, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, one := range t.Tests {
			if !slices.Contains(one.Platforms, "linux") {
				continue
			}
			a := action{id: one.GUID, name: t.ID + " " + one.Name, show: []string{atomics}}
			inputs := map[string]string{}
			for name, in := range one.Inputs {
				inputs[name] = fmt.Sprint(in.Default)
			}
			switch command := filled(one.Executor.Command, inputs, atomics); one.Executor.Name {
			case "sh", "bash":
				a.argv = []string{one.Executor.Name, "-c", command}
			default:
				a.not = "its executor is " + one.Executor.Name
			}
			all = append(all, a)
		}
	}
	return all, nil
}

// filled replaces the arguments, which may refer to each other, and the path of
// the collection in a command.
func filled(command string, inputs map[string]string, atomics string) string {
	for range 3 {
		for name, value := range inputs {
			command = strings.ReplaceAll(command, "#{"+name+"}", value)
		}
	}
	for _, name := range []string{"$PathToAtomicsFolder", "PathToAtomicsFolder"} {
		command = strings.ReplaceAll(command, name, atomics)
	}
	return command
}
