//go:build linux

package exposure

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// Bounds of what is read. Anything beyond is skipped, and noted if that could
// hide a finding.
const (
	fileMost    = 1 << 20 // bytes of one file
	entriesMost = 4096    // names of one directory
	matchesMost = 200     // files of one pattern
	procsMost   = 10000   // processes
	linesMost   = 20000   // lines of a table in /proc
)

// World is what is examined: an account and its machine.
type World struct {
	Root      string   // "" for /; in tests another directory represents the whole machine
	User      string   // name
	Home      string   // absolute
	Dir       string   // the workspace; "" for none
	Env       []string // NAME=VALUE
	UID, GID  int
	Groups    []Group
	Hidden    []string // patterns of names that a policy hides in workspaces, besides those known here
	Effective bool     // this process has the account's rights, so that the kernel decides; else they are computed from modes
	Owned     bool     // if Effective is false: the account would own what is in Home
	Now       time.Time
	Limit     time.Duration                              // for everything together; 0 is 5 s
	Sudo      func(context.Context) (string, error)      // output of sudo -n -l; nil: not called
	Keys      func(context.Context, string) (int, error) // number of keys of the agent at a socket of the account; nil: not called
}

// Group is one of the account's groups.
type Group struct {
	ID   int
	Name string
}

// taker collects the findings of one part of the inventory. It belongs to one
// goroutine.
type taker struct {
	World
	ctx      context.Context
	column   string
	findings []Finding
	notes    []string
}

// part is a piece of the inventory; if it hangs, the others still finish.
type part struct {
	name string
	take func(*taker)
}

// Take makes the inventory of w for one column. What takes longer than w.Limit is
// abandoned, and noted: a network file system may never answer.
func Take(ctx context.Context, w World, column string) ([]Finding, []string) {
	if w.Limit == 0 {
		w.Limit = 5 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, w.Limit)
	defer cancel()
	all := parts()
	done := make([]chan *taker, len(all))
	gate := make(chan struct{}, 16) // a hanging part occupies a thread
	for i, p := range all {
		done[i] = make(chan *taker, 1)
		go func() {
			select {
			case gate <- struct{}{}:
			case <-ctx.Done():
				return
			}
			defer func() { <-gate }()
			t := &taker{World: w, ctx: ctx, column: column}
			p.take(t)
			done[i] <- t
		}()
	}
	var findings []Finding
	var notes []string
	for i, p := range all {
		select {
		case t := <-done[i]:
			findings, notes = append(findings, t.findings...), append(notes, t.notes...)
			continue
		default:
		}
		select {
		case t := <-done[i]:
			findings, notes = append(findings, t.findings...), append(notes, t.notes...)
		case <-ctx.Done():
			notes = append(notes, p.name+": no answer in time; it was left out")
		}
	}
	return findings, notes
}

func (t *taker) add(f Finding) {
	f.Column = t.column
	t.findings = append(t.findings, f)
}

func (t *taker) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// env returns a variable of the account; the last of several counts.
func (t *taker) env(name string) string {
	for i := len(t.Env) - 1; i >= 0; i-- {
		if n, v, ok := strings.Cut(t.Env[i], "="); ok && n == name {
			return v
		}
	}
	return ""
}

// real translates a path of the machine for this process.
func (t *taker) real(name string) string {
	if t.Root == "" {
		return name
	}
	return filepath.Join(t.Root, name)
}

// canAccess reports whether the account may access a path in this mode.
func (t *taker) canAccess(name string, mode uint32) bool {
	if t.Effective {
		return sys.Access(t.real(name), mode) == nil
	}
	full, err := filepath.EvalSymlinks(t.real(name))
	if err != nil {
		return false
	}
	base := t.real("/")
	for at := base; at != full; {
		info, err := os.Lstat(at)
		if err != nil || !t.modeAllows(info, at, sys.MayExecute) {
			return false
		}
		rest, _ := strings.CutPrefix(strings.TrimPrefix(full, at), "/")
		next, _, _ := strings.Cut(rest, "/")
		if rest == "" || !strings.HasPrefix(full, at) {
			break // a link led out of a test's root
		}
		at = filepath.Join(at, next)
	}
	info, err := os.Lstat(full)
	return err == nil && t.modeAllows(info, full, mode)
}

// modeAllows computes the account's permission from the mode of a file. Access
// control lists are ignored.
func (t *taker) modeAllows(info fs.FileInfo, full string, mode uint32) bool {
	perm := uint32(info.Mode().Perm())
	uid, gid, ok := sys.Owner(info)
	switch {
	case !ok:
		return false
	case t.Owned && paths.Within(t.real(t.Home), full) || uid == t.UID:
		perm >>= 6
	case gid == t.GID || slices.ContainsFunc(t.Groups, func(g Group) bool { return g.ID == gid }):
		perm >>= 3
	}
	return perm&mode == mode
}

// content reads the beginning of a regular file.
func (t *taker) content(name string, most int64) ([]byte, error) {
	f, err := sys.OpenRegular(t.real(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// text is the content of a system file that may be missing.
func (t *taker) text(name string) string {
	b, err := t.content(name, 4*fileMost)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// names lists a directory, sorted; at most entriesMost.
func (t *taker) names(dir string) []string {
	f, err := os.Open(t.real(dir))
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(entriesMost)
	if len(names) == entriesMost {
		t.note("%s: more than %d names; the others were left out", dir, entriesMost)
	}
	slices.Sort(names)
	return names
}

// expand returns the existing paths for a pattern of a store.
func (t *taker) expand(pattern string) []string {
	first, rest, _ := strings.Cut(pattern, "/")
	base := "/"
	switch {
	case first == "~":
		base = t.Home
	case first == "@config":
		base = t.base("XDG_CONFIG_HOME", ".config")
	case first == "@data":
		base = t.base("XDG_DATA_HOME", ".local/share")
	case first == "@cache":
		base = t.base("XDG_CACHE_HOME", ".cache")
	case first == "@run":
		base = t.runtime()
	case strings.HasPrefix(first, "$"):
		base = t.env(first[1:])
	}
	if !path.IsAbs(base) {
		return nil
	}
	at := []string{base}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" {
			continue
		}
		var next []string
		for _, dir := range at {
			next = append(next, t.matches(dir, part)...)
		}
		if at = next; len(at) > matchesMost {
			t.note("%s: more than %d files; the others were left out", pattern, matchesMost)
			at = at[:matchesMost]
		}
	}
	return slices.DeleteFunc(at, func(p string) bool { _, err := os.Lstat(t.real(p)); return err != nil })
}

func (t *taker) matches(dir, part string) []string {
	if !strings.Contains(part, "*") {
		return []string{path.Join(dir, part)}
	}
	var out []string
	for _, name := range t.names(dir) {
		if ok, _ := path.Match(part, name); ok {
			out = append(out, path.Join(dir, name))
		}
	}
	return out
}

// base is an XDG base directory.
func (t *taker) base(name, fallback string) string {
	if dir := t.env(name); path.IsAbs(dir) {
		return path.Clean(dir)
	}
	return path.Join(t.Home, fallback)
}

// runtime is the directory of the session's sockets.
func (t *taker) runtime() string {
	if dir := t.env("XDG_RUNTIME_DIR"); path.IsAbs(dir) {
		return path.Clean(dir)
	}
	if t.UID < 0 {
		return ""
	}
	return "/run/user/" + strconv.Itoa(t.UID)
}

// describe describes a file: its mode, size and age.
func (t *taker) describe(info fs.FileInfo) []string {
	out := []string{fmt.Sprintf("mode %04o", info.Mode().Perm())}
	if info.Mode().IsRegular() {
		out = append(out, sizeText(info.Size()))
	}
	if age := t.Now.Sub(info.ModTime()); age >= 0 && !t.Now.IsZero() {
		out = append(out, ageText(age))
	}
	if info.Mode().Perm()&0o004 != 0 && info.Mode().IsRegular() {
		out = append(out, "every account may read it")
	}
	return out
}

func sizeText(n int64) string {
	switch {
	case n < 1<<10:
		return strconv.FormatInt(n, 10) + " bytes"
	case n < 1<<20:
		return strconv.FormatInt(n>>10, 10) + " KiB"
	default:
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
}

func ageText(d time.Duration) string {
	days := int(d / (24 * time.Hour))
	switch {
	case days == 0:
		return "changed today"
	case days == 1:
		return "1 day old"
	default:
		return strconv.Itoa(days) + " days old"
	}
}
