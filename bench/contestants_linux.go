package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// contestant is one way to start a command.
type contestant struct {
	name    string
	program string
	before  []string // arguments before the command; if program is "", the command is the program
	env     []string
	files   []string // opened again for every start, and passed from descriptor 3 on
	root    bool     // starts as root, and becomes the user by itself
}

// contestants are the ways to start a command in a workspace. The view for
// bubblewrap is taken from a run of Holdfast in the same workspace.
func (b *bench) contestants(workspace string) ([]contestant, error) {
	v, err := b.inspectView(workspace)
	if err != nil {
		return nil, fmt.Errorf("inspecting what holdfast shows: %w", err)
	}
	b.inside = v.setting
	all := []contestant{
		{name: bare, env: v.setting},
		{name: unrecorded, program: b.holdfast, before: []string{"run", "--without", "record", "--"}, env: b.env},
		{name: holdfast, program: b.holdfast, before: []string{"run", "--"}, env: b.env},
	}
	if b.bwrap == "" {
		return all, nil
	}
	c := contestant{name: bwrap, program: b.bwrap, before: []string{"--args", "3", "--"}, env: b.env}
	list := filepath.Join(b.dir, "copies", filepath.Base(workspace)+".args")
	args := v.bwrapArgs(workspace, 4, deviceOf)
	if err := os.WriteFile(list, []byte(strings.Join(args, "\x00")+"\x00"), 0o644); err != nil {
		return nil, fmt.Errorf("writing bubblewrap's arguments: %w", err)
	}
	copies, err := b.copyTexts(v, workspace)
	if err != nil {
		return nil, fmt.Errorf("copying the files of holdfast's view: %w", err)
	}
	c.files = append([]string{list}, copies...)
	return slices.Insert(all, 1, c), b.sameView(c, v, workspace)
}

// copyTexts copies the files that were made for the private root, and returns the
// copies in the same order.
func (b *bench) copyTexts(v *view, workspace string) ([]string, error) {
	command := []string{"run", "--", "sh", "-c", `for f; do wc -c <"$f"; cat "$f"; done`, "sh"}
	for _, t := range v.texts {
		command = append(command, t.path)
	}
	if len(v.texts) == 0 {
		return nil, nil
	}
	all, err := b.runAs(workspace, b.holdfast, command...)
	if err != nil {
		return nil, err
	}
	var copies []string
	for i, t := range v.texts {
		line, rest, _ := strings.Cut(all, "\n")
		size, err := strconv.Atoi(line) // a certificate is not as long in each run
		if err != nil || size > len(rest) {
			return nil, fmt.Errorf("%s has %q bytes, of %d", t.path, line, len(rest))
		}
		p := filepath.Join(b.dir, "copies", filepath.Base(workspace)+"."+strconv.Itoa(i))
		if err := os.WriteFile(p, []byte(rest[:size]), 0o644); err != nil {
			return nil, err
		}
		copies, all = append(copies, p), rest[size:]
	}
	if all != "" {
		return nil, fmt.Errorf("the files are %d bytes longer than they were", len(all))
	}
	return copies, nil
}

// inspectView runs Holdfast in a workspace and records what a command there sees.
func (b *bench) inspectView(workspace string) (*view, error) {
	table, err := b.runAs(workspace, b.holdfast, "run", "--", "cat", "/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	env, err := b.runAs(workspace, b.holdfast, "run", "--", "env")
	if err != nil {
		return nil, err
	}
	root, err := b.runAs(workspace, b.holdfast, "run", "--", "find", "/", "-xdev", "(", "-type", "l", "-o", "-type", "f", ")", "-printf", `%y\t%p\t%s\t%l\n`)
	if err != nil {
		return nil, err
	}
	v := &view{mounts: parseMounts(table), links: map[string]string{}}
	for line := range strings.Lines(env) {
		if s := strings.TrimSpace(line); !strings.HasPrefix(s, "PWD=") && !strings.HasPrefix(s, "_=") {
			v.setting = append(v.setting, s)
		}
	}
	v.parseRoot(root)
	return v, nil
}

// sameView checks that bubblewrap shows the directories and files that Holdfast
// shows: a wrong argument would make it look faster.
func (b *bench) sameView(c contestant, v *view, workspace string) error {
	out, _, err := b.runCopies(c, workspace, []string{"cat", "/proc/self/mountinfo"}, 1)
	if err != nil {
		return fmt.Errorf("inspecting what bwrap shows: %w", err)
	}
	has := parseMounts(out)
	for _, m := range v.mounts {
		if m.point == "/" || under(m.point, "/proc") || under(m.point, "/dev") {
			continue
		}
		at := slices.IndexFunc(has, func(o mount) bool { return o.point == m.point })
		if at < 0 {
			return fmt.Errorf("bwrap does not show %s, holdfast does", m.point)
		}
		if has[at].readonly != m.readonly && m.point != "/dev" {
			return fmt.Errorf("%s is read-only under only one of bwrap and holdfast", m.point)
		}
	}
	return nil
}

// deviceOf is the major:minor of the device of a path; "" if the path does not
// exist.
func deviceOf(path string) string {
	fi, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	// The layout of dev_t, as in makedev(3).
	major := (st.Dev>>8)&0xfff | (st.Dev>>32)&^uint64(0xfff)
	minor := st.Dev&0xff | (st.Dev>>12)&^uint64(0xff)
	return fmt.Sprintf("%d:%d", major, uint32(minor))
}
