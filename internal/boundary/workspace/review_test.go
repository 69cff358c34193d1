//go:build linux

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestReviews(t *testing.T) {
	state := tempRoot(t)
	if got, err := Reviews(state); got != nil || err != nil {
		t.Fatalf("without any: %v, %v", got, err)
	}
	for i, session := range []string{"newer", "older"} {
		dir := ReviewsDir(state) + "/" + session
		mkdir(t, dir)
		r := Review{Session: session, Workspace: "/w", Begun: time.Unix(int64(100-i), 0)}
		if err := errors.Join(r.Begin(dir), r.Write(dir)); err != nil {
			t.Fatal(err)
		}
	}
	mkdir(t, ReviewsDir(state)+"/being-made")
	got, err := Reviews(state)
	if err != nil || len(got) != 2 || got[0].Session != "older" || !got[0].Of("/w") || got[0].Of("/") {
		t.Errorf("%+v, %v", got, err)
	}
	names, err := os.ReadDir(ReviewsDir(state) + "/older")
	if err != nil || len(names) != 1 {
		t.Errorf("the directory of a review holds %v, %v", names, err)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"a later version", `{"version": 2, "session": "odd"}`, "unknown version 2"},
		{"no version", `{"session": "odd"}`, "unknown version 0"},
		{"no JSON", `x`, "invalid character"},
		{"the name of another", fmt.Sprintf(`{"version": %d, "session": "older"}`, reviewVersion), `the review odd names the session "older"`},
	} {
		write(t, ReviewsDir(state), "odd/"+ReviewFile, tt.text)
		if got, err := Reviews(state); err == nil || !strings.Contains(err.Error(), tt.want) || len(got) != 2 {
			t.Errorf("%s: %d, %v", tt.name, len(got), err)
		}
	}
	link(t, "../older/"+ReviewFile, ReviewsDir(state), "linked/"+ReviewFile)
	if _, err := ReadReview(ReviewsDir(state) + "/linked"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link in place of a review: %v", err)
	}
}

// A file is replaced as a whole or not at all, and what was begun of it does not stay.
func TestReplaceFile(t *testing.T) {
	for _, durable := range []bool{true, false} {
		dir := t.TempDir()
		for _, text := range []string{"one, and longer", "two"} {
			if err := ReplaceFile(dir+"/f", []byte(text), durable); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(dir + "/f"); string(b) != text {
				t.Errorf("%q, %v", b, err)
			}
		}
		if err := ReplaceFile(dir+"/none/f", nil, durable); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("in no directory: %v", err)
		}
		if err := os.Mkdir(dir+"/d", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := ReplaceFile(dir+"/d", nil, durable); err == nil {
			t.Error("a directory was replaced")
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
			t.Errorf("there are %v, %v", names, err)
		}
	}
}

func TestRemoveTree(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "kept/file", "x")
	write(t, w, "tree/shut/file", "x")
	link(t, w+"/kept", w, "tree/link")
	chmod(t, w+"/tree/shut", 0)
	deep(t, w+"/tree", 300, "end")
	if err := RemoveTree(w + "/tree"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(w + "/tree"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(w + "/kept/file"); err != nil {
		t.Errorf("what its link leads to: %v", err)
	}
	link(t, w+"/kept", w, "name")
	if err := errors.Join(RemoveTree(w+"/name"), RemoveTree(w+"/tree"), RemoveTree(w+"/none/tree")); err != nil {
		t.Errorf("a link, and what is not there: %v", err)
	}
	if _, err := os.Stat(w + "/kept/file"); err != nil {
		t.Errorf("what a link in its place leads to: %v", err)
	}
	link(t, w, w, "way")
	if err := RemoveTree(w + "/way/kept"); err == nil {
		t.Error("a link above it was followed")
	}
}

// Where the kernel copies nothing between two file systems, bytes are read and
// written.
func TestCopyBytes(t *testing.T) {
	w := tempRoot(t)
	text := strings.Repeat("0123456789", 100_000)
	write(t, w, "from", text)
	from, err := os.Open(w + "/from")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(w + "/to")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := copyBytes(int(from.Fd()), int(to.Fd()), 5, int64(len(text))+99); err != nil { // it became shorter
		t.Fatal(err)
	}
	if got, err := os.ReadFile(w + "/to"); err != nil || string(got) != "\x00\x00\x00\x00\x00"+text[5:] {
		t.Errorf("%d bytes, %v, want %d", len(got), err, len(text))
	}
}
