package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Info is what is known of a log without reading it all.
type Info struct {
	Session string
	Path    string
	Start   time.Time // of the first record; of the file when that cannot be read
	Size    int64     // bytes
	Open    bool      // its run is in progress
}

// List finds the logs of a directory, the newest first. A missing directory has none.
func List(dir string) ([]Info, error) {
	paths, err := filesWithSuffix(dir, suffix)
	if err != nil {
		return nil, fmt.Errorf("listing records: %w", err)
	}
	var infos []Info
	for _, path := range paths {
		i, err := readInfo(path)
		if errors.Is(err, fs.ErrNotExist) { // it was pruned meanwhile
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a record: %w", err)
		}
		infos = append(infos, i)
	}
	slices.SortStableFunc(infos, func(a, b Info) int { return b.Start.Compare(a.Start) })
	return infos, nil
}

func readInfo(path string) (Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	i := Info{Session: strings.TrimSuffix(filepath.Base(path), suffix), Path: path, Start: st.ModTime(), Size: st.Size(), Open: locked(f)}
	line, err := bufio.NewReaderSize(f, 64<<10).ReadSlice('\n')
	var r Record
	if err == nil && parseLine(line[:len(line)-1], &r) == nil && r.at[mTime].to != 0 {
		i.Start = r.time
	}
	return i, nil
}

// FindError is the error for a name that matches no log, or several.
type FindError struct {
	Session string
	Several []string // the ids with that prefix
}

func (e *FindError) Error() string {
	switch {
	case len(e.Several) > 0:
		return fmt.Sprintf("%d sessions begin with %q", len(e.Several), e.Session)
	case e.Session == "":
		return "there is no record yet"
	}
	return fmt.Sprintf("there is no record of a session %q", e.Session)
}

// Find finds the log of a session by its id or a unique prefix of it; "" is the
// newest. The error is a *FindError if it is not found.
func Find(dir, session string) (Info, error) {
	infos, err := List(dir)
	if err != nil {
		return Info{}, err
	}
	var found []Info
	for _, i := range infos {
		if i.Session == session || session == "" {
			return i, nil
		}
		if strings.HasPrefix(i.Session, session) {
			found = append(found, i)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	e := &FindError{Session: session}
	for _, i := range found {
		e.Several = append(e.Several, i.Session)
	}
	return Info{}, e
}

// prunedDir is the directory, below that of heads, with the heads of pruned
// logs: the last maxPruned by name.
const (
	prunedDir = "pruned"
	maxPruned = 1000
)

// Prune removes the logs of ended runs, except those that stay, and returns them;
// if try is set, it only returns them. It calls stays with the newest first: i is
// the n-th, and it and all before it have so many bytes. The heads of removed logs
// are set aside, so that a log that is gone for another reason counts as lost.
func Prune(dir, heads string, try bool, stays func(i Info, n int, bytes int64) bool) (removed []Info, err error) {
	infos, err := List(dir)
	if err != nil {
		return nil, err
	}
	bytes := int64(0)
	for n, i := range infos {
		bytes += i.Size
		if i.Open || stays(i, n+1, bytes) {
			continue
		}
		if !try {
			if err := remove(i, heads); err != nil {
				return removed, fmt.Errorf("removing an old record: %w", err)
			}
		}
		removed = append(removed, i)
	}
	if try || len(removed) == 0 {
		return removed, nil
	}
	return removed, trimPruned(dir, heads)
}

// pruneOld removes the oldest logs of dir if there are too many; last is the newest.
// Of many runs that end together one does that, since it reads all logs.
func pruneOld(dir, heads, last string) error {
	if fits, err := fits(dir, last); fits || err != nil {
		return err
	}
	only, err := os.Open(heads)
	if err != nil {
		return fmt.Errorf("removing old records: %w", err)
	}
	defer only.Close()
	if !tryLock(only) {
		return nil
	}
	_, err = Prune(dir, heads, false, func(_ Info, n int, bytes int64) bool { return n <= MaxRuns && bytes <= MaxTotal })
	return err
}

// trimPruned removes all but the last maxPruned heads of pruned logs.
func trimPruned(dir, heads string) error {
	_, heads = defaultDirs(dir, "", heads)
	old, err := filesWithSuffix(filepath.Join(heads, prunedDir), headSuffix)
	for len(old) > maxPruned && err == nil {
		err = os.Remove(old[0])
		old = old[1:]
	}
	if errors.Is(err, fs.ErrNotExist) { // another run pruned first
		return nil
	}
	return err
}

// Sizes are added up after a log of more than smallLog, and at each addUpEvery-th log:
// small ones in between add little to MaxTotal.
const (
	smallLog   = 1 << 20
	addUpEvery = 16
)

// fits reports whether dir has few logs so far, by their number and sizes
// alone: reading each of them takes a tenth of a short run. last is the newest.
func fits(dir, last string) (bool, error) {
	paths, err := filesWithSuffix(dir, suffix)
	if err != nil {
		return false, fmt.Errorf("listing records: %w", err)
	}
	if len(paths) > MaxRuns+moreRuns {
		return false, nil
	}
	if st, err := os.Lstat(last); err == nil && st.Size() <= smallLog && len(paths)%addUpEvery != 0 {
		return true, nil
	}
	size := int64(0)
	for _, path := range paths {
		switch st, err := os.Lstat(path); {
		case errors.Is(err, fs.ErrNotExist): // it was pruned meanwhile
		case err != nil:
			return false, fmt.Errorf("reading a record: %w", err)
		default:
			size += st.Size()
		}
	}
	return size <= MaxTotal, nil
}

// remove removes a log that has ended, so that Lost does not list it; heads is the
// directory of heads, "" the one beside that of the logs. The head is set aside
// first: if the log were removed first and the rest interrupted, Lost would list it.
func remove(i Info, heads string) error {
	_, heads = defaultDirs(filepath.Dir(i.Path), "", heads)
	aside := filepath.Join(heads, prunedDir)
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	name := i.Session + headSuffix
	if err := os.Rename(filepath.Join(heads, name), filepath.Join(aside, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(i.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Lost lists the sessions with a head and no log that were not pruned: somebody removed
// the log. Only a regular file is a log: List skips a link or a directory of its name.
func Lost(dir, heads string) ([]string, error) {
	_, heads = defaultDirs(dir, "", heads)
	paths, err := filesWithSuffix(heads, headSuffix)
	if err != nil {
		return nil, fmt.Errorf("listing heads: %w", err)
	}
	var lost []string
	for _, path := range paths {
		session := strings.TrimSuffix(filepath.Base(path), headSuffix)
		st, err := os.Lstat(filepath.Join(dir, session+suffix))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !st.Mode().IsRegular() {
			if _, err := os.Lstat(path); err == nil { // or it was pruned meanwhile
				lost = append(lost, session)
			}
		}
	}
	return lost, nil
}
