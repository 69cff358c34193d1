//go:build linux

package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/redact"
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/policy"
)

// Agent is the content of an agent program's private home at its start, and the
// agent's changes to it at its end.
type Agent struct {
	plan    *policy.Agent // nil if no preset applies
	home    string
	state   string // directory of Holdfast's own state
	copies  []*copyRow
	secrets *redact.Redactor

	inside *os.File // the private home, opened before the command began; nil before that
	uid    int      // of everything inside, as seen by the host
	gid    int

	// What is inside, once AddTo was called.
	variables map[string]string
	paths     []policy.PathRule

	warnings []string
}

// New makes the directories of the history and reads the files to copy. plan is
// nil if no preset applies: then there is nothing to copy. state is the directory of
// Holdfast's own state.
func New(plan *policy.Agent, home, state string, secrets *redact.Redactor) (*Agent, error) {
	a := &Agent{plan: plan, home: home, state: state, secrets: secrets}
	if a.plan == nil {
		return a, nil
	}
	for _, dir := range a.plan.Keeps {
		if err := makeDirs(dir); err != nil {
			return nil, fmt.Errorf("making the directory of the history: %w", err)
		}
	}
	budget := copyBudget{files: maxCopyFiles, bytes: maxCopyBytes}
	for _, c := range a.plan.Copies {
		one, err := a.read(c, &budget)
		if err != nil {
			a.warnings = append(a.warnings, fmt.Sprintf("%s is not copied: %v", c.Place, err))
		}
		if err := a.recall(one); err != nil {
			a.warnings = append(a.warnings, err.Error())
		}
		a.copies = append(a.copies, one)
	}
	return a, nil
}

// makeDirs makes a directory and its missing parents. Its path may contain no
// links: the plan has resolved them.
func makeDirs(dir string) error {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	at, err := unix.Openat2(unix.AT_FDCWD, "/", how)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/", Err: err}
	}
	defer func() { unix.Close(at) }()
	for name := range strings.SplitSeq(strings.TrimPrefix(dir, "/"), "/") {
		if err := unix.Mkdirat(at, name, 0o700); err != nil && err != unix.EEXIST && err != unix.EROFS && err != unix.EACCES {
			return &os.PathError{Op: "mkdir", Path: dir, Err: err}
		}
		next, err := unix.Openat2(at, name, how)
		if err != nil {
			return &os.PathError{Op: "open", Path: dir, Err: err}
		}
		unix.Close(at)
		at = next
	}
	return nil
}

// AddTo adds the copies and the files of the preset to the private home. The
// environment of spec is complete.
func (a *Agent) AddTo(spec *boundary.Spec) error {
	if a.plan == nil {
		return nil
	}
	variables := map[string]string{}
	for _, e := range spec.Plan.Env {
		variables[e.Name] = e.Value
	}
	a.variables, a.paths = variables, spec.Plan.Paths
	if err := a.addCopies(spec, variables); err != nil {
		return err
	}
	for _, f := range a.plan.Files {
		content, all := fill(f.Content, variables, quoted)
		if !all {
			continue
		}
		at := slices.IndexFunc(spec.Files, func(have boundary.File) bool { return have.Path == f.Path })
		if at >= 0 && !f.Merge {
			continue // of several for one path, the first complete one counts
		}
		if f.Merge {
			base := hostFile(f.Source)
			if at >= 0 { // settings that make the agent report, which include the host's
				base = func() ([]byte, error) { return spec.Files[at].Content, nil }
			}
			var err error
			if content, err = mergeJSON(base, f, content); err != nil {
				return fmt.Errorf("%s: %w", f.Origin, err)
			}
		}
		if at >= 0 {
			spec.Files[at].Content = []byte(content)
			continue
		}
		file := boundary.File{Path: f.Path, Content: []byte(content)}
		if f.Writable {
			file.Mode = owner
		}
		spec.Files = append(spec.Files, file)
	}
	return nil
}

// owner is the mode of what the agent may change in its private home.
const owner = 0o600

// addCopies adds the copies, and what the agent is told.
func (a *Agent) addCopies(spec *boundary.Spec, variables map[string]string) error {
	for _, c := range a.copies {
		given, err := c.render(variables)
		if err != nil {
			return err
		}
		if c.Tell && !c.unreadable && !c.dir {
			c.told = []byte(spec.Plan.Told())
			if len(given) == 0 {
				given = []copiedFile{{path: c.Path}}
			}
		}
		for _, f := range given {
			spec.Files = append(spec.Files, boundary.File{Path: f.path, Content: slices.Concat(f.content, c.told), Mode: fs.FileMode(owner | f.mode&0o100)})
		}
	}
	spec.Files = append(spec.Files, boundary.File{Path: policy.InsideFile, Content: []byte(spec.Plan.Inside())})
	return nil
}

// hostFile reads a file of the host by the path that the plan resolved.
func hostFile(path string) func() ([]byte, error) {
	return func() ([]byte, error) {
		if path == "" {
			return nil, fs.ErrNotExist
		}
		f, err := openResolved(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxCopyFile))
	}
}

// mergeJSON lays JSON over the content of the file of that path, without what is dropped.
func mergeJSON(read func() ([]byte, error), f policy.AgentFile, content string) (string, error) {
	host, err := read()
	if errors.Is(err, fs.ErrNotExist) {
		return content, nil
	}
	if err != nil {
		return "", fmt.Errorf("merging into %s: %w", f.Path, err)
	}
	base, err := parseJSON(host)
	if err != nil {
		return "", fmt.Errorf("merging into %s: %w", f.Path, err)
	}
	over, err := parseJSON([]byte(content))
	if err != nil {
		return "", fmt.Errorf("the content for %s: %w", f.Path, err)
	}
	for _, way := range f.Drop {
		remove(base, way)
	}
	overlay(base, over)
	text, err := writeJSON(base)
	return string(text), err
}

// OpenHome opens the private home before the command is executed. Its content is
// read through this descriptor when all processes inside have ended, whatever was
// mounted or linked there since.
func (a *Agent) OpenHome(w boundary.Watch) error {
	if a.plan == nil || len(a.copies) == 0 {
		return nil
	}
	a.uid, a.gid = w.UID, w.GID
	return sys.AsTask(w.UID, w.GID, func() error {
		dir, err := os.Open(filepath.Join(fmt.Sprintf("/proc/%d/root", w.First), a.home))
		if err != nil {
			return fmt.Errorf("opening the private home: %w", err)
		}
		a.release()
		a.inside = dir
		return nil
	})
}

// Warnings say what could not be copied, and why.
func (a *Agent) Warnings() []string { return a.warnings }

func (a *Agent) release() {
	if a.inside != nil {
		a.inside.Close()
		a.inside = nil
	}
}
