//go:build linux

package workspace

import (
	"net"
	"path/filepath"
	"slices"
	"testing"
)

// A tree that may only be read hides its secrets and sockets, at any depth.
func TestUnreadable(t *testing.T) {
	root, other := tempRoot(t), tempRoot(t)
	write(t, root, "a/.env", "TOKEN=x")
	write(t, root, "a/notes", "x")
	write(t, other, ".env", "TOKEN=x")
	link(t, other, root, "out")
	socket, err := net.Listen("unix", filepath.Join(root, "s"))
	must(t, err)
	defer socket.Close()
	hidden, err := Unreadable(t.Context(), root, DefaultRules())
	must(t, err)
	var got []string
	for _, h := range hidden {
		if h.Root != root {
			t.Errorf("%+v, want the root %s", h, root)
		}
		got = append(got, h.Path)
	}
	slices.Sort(got)
	if want := []string{"a/.env", "s"}; !slices.Equal(got, want) {
		t.Errorf("hidden are %q, want %q: a link out of the tree is not followed", got, want)
	}
	if _, err := Unreadable(t.Context(), filepath.Join(root, "none"), DefaultRules()); err == nil {
		t.Error("a tree that is not there has no secrets")
	}
}

// A new replacement makes git show other objects. Old ones and other refs do not.
func TestPackedHarm(t *testing.T) {
	const one, two, branch = "aaaa refs/replace/1111\n", "bbbb refs/replace/2222\n", "cccc refs/heads/main\n"
	for _, tt := range []struct {
		name, now, was string
		harm           bool
	}{
		{"none", branch, "", false},
		{"the same", one + branch, one, false},
		{"one is gone", one, one + two, false},
		{"one is new", one + two, one, true},
		{"one leads elsewhere", "dddd refs/replace/1111\n", one, true},
	} {
		if got := PackedHarm([]byte(tt.now), []byte(tt.was)); (got != "") != tt.harm {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}
