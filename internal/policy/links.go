package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// located is a file as the kernel found it.
type located struct {
	path  string // absolute; no component is a link
	dir   bool
	file  bool // a regular file
	mode  uint32
	owner int
	id    FileID
	links []link // that were followed on the way, in this order
}

// link is a symbolic link on the way to a file.
type link struct {
	at     string // its own name; no component above it is a link
	target string // as it stands in the link
	owner  int
}

// writable is a place of the host whose contents something inside can change.
type writable struct{ path, why string }

// maxFollowed is how many links the kernel follows in one path
// (path_resolution(7)).
const maxFollowed = 40

// untrusted says why a link on the way to a path is not followed: it is in a
// place where something inside could have made it, in this run or in an earlier
// one, or it belongs to somebody else. nil says that all may be followed, as
// those are that the user made outside every such place.
func (h Host) untrusted(at located, places []writable) *untrustedLink {
	for _, l := range at.links {
		why := ""
		switch place := containing(places, l.at); {
		case place != "":
			why = "in " + place + ", where what runs inside could have made it"
		case h.exposedAbove(l.at) != "":
			why = "in " + quote(h.exposedAbove(l.at)) + ", where an earlier run could have made it"
		case l.owner != 0 && l.owner != h.UID:
			why = fmt.Sprintf("of user %d, not of yours or root's", l.owner)
		}
		if why != "" {
			return &untrustedLink{link: l, why: why, leads: at.path}
		}
	}
	return nil
}

// shipped is untrusted for links that a repository may have brought: those of a
// directory with a .git above them. What is to be written through them has to be
// named itself.
func (h Host) shipped(at located) *untrustedLink {
	for _, l := range at.links {
		for dir := filepath.Dir(l.at); dir != "/" && !within(h.Home, dir); dir = filepath.Dir(dir) {
			if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
				return &untrustedLink{link: l, why: "in the repository " + quote(dir) + ", which may have brought it", leads: at.path}
			}
		}
	}
	return nil
}

func containing(places []writable, path string) string {
	for _, p := range places {
		if within(path, p.path) {
			return p.why
		}
	}
	return ""
}

// untrustedLink is a link that is not followed.
type untrustedLink struct {
	link
	why   string
	leads string // what the whole path leads to; "" for nothing that exists
}

func (u *untrustedLink) String() string {
	return fmt.Sprintf("it goes through the link %s (to %s) %s", quote(printable(u.at)), quote(printable(u.target)), u.why)
}

// hint says what to type; name is how the path was given.
func (u *untrustedLink) hint(name string) string {
	if u.leads == "" {
		return "see what the link is for, and remove it: rm " + quote(printable(u.at))
	}
	return "remove the link, or if you mean what it leads to, name that: " + name + " " + quote(printable(u.leads))
}

// exposedDir holds a file for each tree that a run could write to, in the state
// directory. Its name is the hash of the tree's, its content the name.
const exposedDir = "exposed"

func (h Host) exposed(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(h.State, exposedDir, hex.EncodeToString(sum[:16]))
}

// exposedAbove is the tree above path that an earlier run could write to; "" for
// none.
func (h Host) exposedAbove(path string) string {
	if h.State == "" {
		return ""
	}
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(h.exposed(dir)); err == nil {
			return dir
		}
	}
	return ""
}

// MaxExposed is how many trees are remembered. Beyond that those that are gone are
// forgotten, then those that no run could write to for longest.
const MaxExposed = 4096

// RecordExposed notes for later runs the trees that one can write to. state is the
// directory of Host.State.
func RecordExposed(state string, trees []string) error {
	h := Host{State: state}
	if err := os.MkdirAll(filepath.Join(state, exposedDir), 0o700); err != nil {
		return fmt.Errorf("noting what the run can write to: %w", err)
	}
	added := false
	for _, tree := range trees {
		now := time.Now()
		if known, err := os.Lstat(h.exposed(tree)); err == nil {
			if now.Sub(known.ModTime()) > 24*time.Hour { // of use to PruneExposed, and no write for each run
				err = os.Chtimes(h.exposed(tree), now, now)
			}
			if err == nil {
				continue
			}
		}
		if err := os.WriteFile(h.exposed(tree), []byte(tree+"\n"), 0o600); err != nil {
			return fmt.Errorf("noting what the run can write to: %w", err)
		}
		added = true
	}
	if !added {
		return nil
	}
	all, err := os.ReadDir(filepath.Join(state, exposedDir))
	if err == nil && len(all) > MaxExposed {
		err = PruneExposed(state, MaxExposed)
	}
	return err
}

// PruneExposed forgets the trees that are gone, and of the others all but those
// that a run could write to last.
func PruneExposed(state string, most int) error {
	dir := filepath.Join(state, exposedDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("forgetting old trees: %w", err)
	}
	var kept []fs.FileInfo
	forget := func(name string) {
		if rerr := os.Remove(filepath.Join(dir, name)); err == nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = rerr
		}
	}
	for _, e := range entries {
		tree, rerr := os.ReadFile(filepath.Join(dir, e.Name()))
		info, ierr := e.Info()
		if rerr != nil || ierr != nil {
			continue // another run forgot it
		}
		if _, terr := os.Lstat(strings.TrimSuffix(string(tree), "\n")); errors.Is(terr, fs.ErrNotExist) && len(tree) > 0 {
			forget(e.Name())
			continue
		}
		kept = append(kept, info)
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, old := range kept[min(most, len(kept)):] {
		forget(old.Name())
	}
	if err != nil {
		return fmt.Errorf("forgetting old trees: %w", err)
	}
	return nil
}
