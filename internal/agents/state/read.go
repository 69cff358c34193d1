//go:build linux

package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/policy"
)

// Limits of what is copied into a private home, and collected from it.
const (
	maxCopyFile  = 8 << 20  // bytes of one file: ~/.claude.json grows
	maxCopyBytes = 16 << 20 // of all
	maxCopyFiles = 2000
	maxCopyDepth = 8
)

type copyBudget struct{ files, bytes int }

func (b *copyBudget) reserve(size int) error {
	b.files, b.bytes = b.files-1, b.bytes-size
	if b.files < 0 || b.bytes < 0 {
		return fmt.Errorf("there is more than %d files or %d MiB", maxCopyFiles, maxCopyBytes>>20)
	}
	return nil
}

// copyRow is one row of the preset: a file, or a directory of them.
type copyRow struct {
	policy.AgentCopy
	files      []copiedFile
	dir        bool // Source is a directory
	unreadable bool // it could not be read: new files there inside are no changes
	memory     *memory
	told       []byte // what the file has besides the user's text; nil for nothing
}

// copiedFile is one file, as the host has it and as given to the agent.
type copiedFile struct {
	path    string // inside
	rest    string // below the row's Path; "" for the row itself
	sum     string // SHA-256 of the host's bytes, hex
	content []byte // as given to the agent, once render was called
	mode    uint32
	masked  bool           // it is not complete: secrets were masked, or keys left out
	json    map[string]any // for rows that filter JSON; content is made from it

	hidden     []string    // where secrets were masked: keys, or lines
	references []reference // to secrets, which the agent looks up inside
}

// filtered reports whether the row filters JSON.
func (c *copyRow) filtered() bool { return len(c.Drop)+len(c.Only)+len(c.Set)+len(c.Remember) > 0 }

// read reads the host's files. Links and special files in a directory are
// skipped: an agent of an earlier run may have chosen where a link leads.
func (a *Agent) read(row policy.AgentCopy, budget *copyBudget) (*copyRow, error) {
	c := &copyRow{AgentCopy: row}
	if row.Source == "" {
		return c, nil
	}
	err := c.readTree(row.Source, "", 0, budget, a.mask)
	if err != nil {
		c.files, c.unreadable = nil, true
	}
	return c, err
}

// openResolved opens a path that a plan resolved: no part of it may have become a
// link.
func openResolved(path string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (c *copyRow) readTree(path, rest string, depth int, budget *copyBudget, mask func(path, text string) string) error {
	f, err := openResolved(path)
	if err != nil {
		if rest != "" && (errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOENT)) {
			return nil
		}
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return err
	case st.IsDir() && depth < maxCopyDepth:
		c.dir = c.dir || rest == ""
		names, err := f.Readdirnames(maxCopyFiles + 1)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		slices.Sort(names)
		for _, name := range names {
			if rest == "" && slices.Contains(c.Except, name) {
				continue
			}
			if err := c.readTree(filepath.Join(path, name), filepath.Join(rest, name), depth+1, budget, mask); err != nil {
				return err
			}
		}
		return nil
	case !st.Mode().IsRegular():
		return nil
	case st.Size() > maxCopyFile:
		return fmt.Errorf("%s has more than %d MiB", path, maxCopyFile>>20)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxCopyFile))
	if err != nil {
		return err
	}
	if err := budget.reserve(len(data)); err != nil {
		return err
	}
	return c.addFile(rest, data, st.Mode(), func(text string) string { return mask(path, text) })
}

// addFile adds one file, without its secrets.
func (c *copyRow) addFile(rest string, data []byte, mode fs.FileMode, mask func(string) string) error {
	sum := sha256.Sum256(data)
	file := copiedFile{path: filepath.Join(c.Path, rest), rest: rest, sum: hex.EncodeToString(sum[:]), mode: uint32(mode.Perm())}
	if c.filtered() {
		object, err := parseJSON(data)
		if err != nil {
			return fmt.Errorf("it is not the expected JSON: %w", err)
		}
		c.filter(object)
		if data, err = writeJSON(object); err != nil {
			return err
		}
		if file.json, err = parseJSON([]byte(mask(string(data)))); err != nil {
			return errors.New("its secrets cannot be separated from the rest")
		}
		file.hidden, file.references = maskedKeys(object, file.json), referencesIn(file.json)
		file.masked = true
		c.files = append(c.files, file)
		return nil
	}
	file.content = []byte(mask(string(data)))
	file.masked = !bytes.Equal(file.content, data)
	was, err := parseJSON(data)
	now, nowErr := parseJSON(file.content)
	if err == nil && nowErr == nil {
		file.hidden, file.references = maskedKeys(was, now), referencesIn(now)
	} else {
		file.hidden = maskedLines(data, file.content)
	}
	c.files = append(c.files, file)
	return nil
}

// filter removes from a JSON file what the agent of this run must not see.
func (c *copyRow) filter(object map[string]any) {
	for _, way := range c.Drop {
		remove(object, way)
	}
	kept := map[string][]string{}
	for _, way := range c.Only {
		above := strings.Join(way[:len(way)-1], "\x00")
		kept[above] = append(kept[above], way[len(way)-1])
	}
	for above, names := range kept {
		parent := object
		if above != "" {
			parent = descend(object, strings.Split(above, "\x00"))
		}
		for name := range parent {
			if !slices.Contains(names, name) {
				delete(parent, name)
			}
		}
	}
}

// render makes the files for the agent.
func (c *copyRow) render(variables map[string]string) ([]copiedFile, error) {
	known := c.memory != nil && len(c.memory.values) > 0
	if len(c.files) == 0 && (len(c.Set) > 0 || known) && !c.unreadable && c.Source == "" {
		c.files = []copiedFile{{path: c.Path, json: map[string]any{}}}
	}
	for i := range c.files {
		f := &c.files[i]
		if f.json == nil {
			continue
		}
		for _, v := range c.Set {
			if value, all := fillValue(v.Value, variables); all {
				set(f.json, v.Key, value)
			}
		}
		if known {
			overlay(f.json, c.memory.values)
		}
		var err error
		if f.content, err = writeJSON(f.json); err != nil {
			return nil, err
		}
	}
	return c.files, nil
}

// fill replaces variables in a text, each as written by write; all is false if one is not
// set.
func fill(text string, variables map[string]string, write func(string) string) (_ string, all bool) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		word, after, closed := strings.Cut(rest, "}")
		name, last, cut := strings.Cut(word, ":-")
		value := variables[name]
		if !closed || value == "" {
			return "", false
		}
		if cut {
			var n int
			if _, err := fmt.Sscan(last, &n); err != nil || n <= 0 {
				return "", false
			}
			value = value[max(0, len(value)-n):]
		}
		b.WriteString(write(value))
		text = after
	}
}

// quoted is a text as it is between the quotes of JSON, TOML or YAML: a repository chooses the
// names of its directories, and so the value of PWD.
func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(text) // a text is always JSON, and a Builder takes all
	return strings.NewReplacer("'", `\u0027`, "\x7f", `\u007f`).Replace(b.String()[1 : b.Len()-len("\"\n")])
}

// fillValue is fill for a JSON value, which needs no quotes.
func fillValue(value any, variables map[string]string) (any, bool) {
	switch v := value.(type) {
	case string:
		return fill(v, variables, func(value string) string { return value })
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			filled, all := fillValue(one, variables)
			if !all {
				return nil, false
			}
			out[i] = filled
		}
		return out, true
	}
	return value, true
}
