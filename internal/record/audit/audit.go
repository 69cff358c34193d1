package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Limits of what is kept: what runs inside decides how much there is to record.
const (
	MaxBytes = 256 << 20 // of one run, except its beginning and end; beyond it nothing is recorded, so nothing happens that needs a record
	MaxTotal = 1 << 30   // of all runs that have ended; the oldest go first
	MaxRuns  = 200       // likewise
	moreRuns = 20        // beyond MaxRuns, before the oldest are removed together
)

const suffix = ".jsonl"

// Options say how a run is recorded. The zero value of each is its default.
type Options struct {
	Session  string            // id of the run; see ValidSession
	Keys     string            // directory of the signing key, made on first use; "" is "keys" beside the directory of the log
	Heads    string            // directory of the newest checkpoint of each log; "" is "heads" beside the directory of the log
	Anchors  []Anchor          // get the newest checkpoint every ten seconds, and at once after what is severe
	Detail   map[string]string // of the first record: what is recorded, and by whom
	Failed   func(error)       // called once, in a goroutine of its own, when nothing can be recorded any more
	Noted    func(event.Event) // gets the log's own events about losses, in a goroutine of its own; may be nil
	MaxBytes int64             // of the log; 0 is the constant MaxBytes
}

// ValidSession reports whether id is a valid id of a run: 1 to 64 letters,
// digits, dots, hyphens and underscores, the first a letter or a digit.
func ValidSession(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		word := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !word && (i == 0 || c != '.' && c != '-' && c != '_') {
			return false
		}
	}
	return true
}

// defaultDirs replaces "" with the directories beside that of the logs.
func defaultDirs(dir, keys, heads string) (string, string) {
	beside := filepath.Dir(filepath.Clean(dir))
	if keys == "" {
		keys = filepath.Join(beside, "keys")
	}
	if heads == "" {
		heads = filepath.Join(beside, "heads")
	}
	return keys, heads
}

// complete fills in the defaults in o, for the log of a run in dir.
func (o *Options) complete(dir string) error {
	o.Keys, o.Heads = defaultDirs(dir, o.Keys, o.Heads)
	if o.MaxBytes <= 0 {
		o.MaxBytes = MaxBytes
	}
	if !ValidSession(o.Session) {
		return fmt.Errorf("%q is not the id of a run", o.Session)
	}
	return nil
}

// makePrivateDir makes a directory of mode 0700, or changes an existing one to
// it. A link is refused: the state directory is kept out of every view by its
// path, and a link in it may lead back into a view.
func makePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s is a symbolic link: set XDG_STATE_HOME to the directory that is to hold the state", dir)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// Create begins the record of a run in dir, which is created if missing, readable
// by the user alone. On an error there is no record, so nothing may run.
func Create(dir string, o Options) (*Log, error) {
	if err := o.complete(dir); err != nil {
		return nil, fmt.Errorf("beginning the record of the run: %w", err)
	}
	for _, d := range []string{dir, o.Heads} {
		if err := makePrivateDir(d); err != nil {
			return nil, fmt.Errorf("making the directory for records: %w", err)
		}
	}
	k, err := loadKey(o.Keys)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, o.Session+suffix)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("beginning the record of the run: %w", err)
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("beginning the record of the run: %w", err)
	}
	l, err := begin(f, path, k, o)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("beginning the record of the run: %w", err)
	}
	return l, nil
}

// syncDir makes the names in a directory survive a power failure.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// prepare writes the replacement of a file to disk, and returns its name.
func prepare(path string, content []byte, mode fs.FileMode) (next string, err error) {
	next = path + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return "", err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(next))
	}
	return next, nil
}
