//go:build linux

package review

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

// Root applies in the workspace of another user, who exchanges names meanwhile. That
// user can rename root's files in the user's directories, but no more: their owner and
// mode stay.
func TestRootAppliesWhereTheOwnerExchangesNames(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	for _, one := range []struct {
		name, lower, run string // what was in the workspace, and what the run left
		op               string // before or, of mkdir, after which the names are exchanged; "": before Apply
		secret, target   string // target "": the private name
	}{
		{"a directory that is being made", "f=x", "new/f=y", "mkdir", "0700 secret/", ""},
		{"a file whose mode changes", "0600 f=x", "0644 f=x", "write", "0600 secret=k", "f"},
		{"a directory whose mode changes", "0700 f/", "0755 f/", "", "0700 secret/", "f"},
	} {
		t.Run(one.name, func(t *testing.T) {
			f := newField(t, Overlay)
			f.ws = inMemory(t) // on another file system: things are prepared beside their place
			f.lower(one.lower, one.secret).upper(one.run)
			if strings.HasSuffix(one.secret, "/") {
				f.make(f.ws, "secret/key=root's")
			}
			if err := os.Chown(f.ws, 12345, 12345); err != nil {
				t.Fatal(err)
			}
			var before unix.Stat_t
			if err := unix.Lstat(f.ws+"/secret", &before); err != nil {
				t.Fatal(err)
			}
			s := f.collect()
			f.acceptAll(s)
			exchanged := one.op == "" && exchange(f.ws, one.target)
			r, err := s.Apply(t.Context(), Options{hook: func(op string, done bool) error {
				if op == one.op && !exchanged && done == (op == "mkdir") {
					exchanged = exchange(f.ws, one.target)
				}
				return nil
			}})
			t.Log(r.Applied, r.Conflicts, r.Refused, err)
			if !exchanged {
				t.Fatal("nothing was exchanged: the test shows nothing")
			}
			unchanged(t, f.ws, &before)
		})
	}
}

// exchange gives secret another name; "" is the first private one that is there.
func exchange(ws, target string) bool {
	list, _ := os.ReadDir(ws)
	for _, e := range list {
		if target == "" && strings.HasPrefix(e.Name(), tempPrefix) {
			target = e.Name()
		}
	}
	return target != "" && unix.Renameat2(unix.AT_FDCWD, ws+"/secret", unix.AT_FDCWD, ws+"/"+target, unix.RENAME_EXCHANGE) == nil
}

// unchanged finds a file again, by whatever name.
func unchanged(t *testing.T, ws string, before *unix.Stat_t) {
	t.Helper()
	list, err := os.ReadDir(ws)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		var st unix.Stat_t
		if unix.Lstat(ws+"/"+e.Name(), &st) == nil && st.Ino == before.Ino {
			if st.Uid != before.Uid || st.Mode != before.Mode {
				t.Errorf("%s: owner %d and mode %04o, was %d and %04o", e.Name(), st.Uid, st.Mode&0o7777, before.Uid, before.Mode&0o7777)
			}
			return
		}
	}
	t.Error("it is gone")
}
