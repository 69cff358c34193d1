//go:build linux

package review

import (
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

func TestCollectOverlay(t *testing.T) {
	f := newField(t, Overlay)
	f.lower("a=1\n", "same=x", "gone=old old\n", "moved=some content that moved\n", "d/x=1", "d/y/z=2", "mode=m", "0755 tool=#!/bin/sh\n", "l->a", "opaque/old=1", "opaque/kept=2", "tofile/in=1", "todir=1", "Makefile=all:\n")
	f.upper("a=2\n", "same=x", "gone!", "moved!", "sub/arrived=some content that moved\n", "d!", "0755 mode=m", "0755 tool=#!/bin/sh\nx\n", "l->/etc/passwd",
		"opaque/kept=2", "opaque/new=3", "tofile=now", "todir/f=1", "Makefile=all:\n\tfalse\n", "pipe|", "0755 run=#!/bin/sh\n", "empty/", "bad\x1b[31mname=1", "A=twin", "4755 su=x")
	f.attr(f.dir+"/upper/opaque", "user.overlay.opaque", "y")
	s := f.collect()
	want(t, lines(s),
		`modified "Makefile" [Makefile]`,
		`added "bad\x1b[31mname" [name]`,
		`modified "l" link→link [link]`,
		`mode "mode" [program]`,
		`added "run" [program]`,
		`added "su" [setuid] [program]`,
		`type "todir" file→dir [type]`,
		`added "todir/f" [below]`,
		`type "tofile" dir→file [type]`,
		`deleted "tofile/in" file→none [below]`,
		`modified "tool" [program]`,
		`added "A"`,
		`modified "a"`,
		`deleted "d" dir→none`,
		`deleted "d/x" file→none`,
		`deleted "d/y" dir→none`,
		`deleted "d/y/z" file→none`,
		`added "empty" none→dir`,
		`deleted "gone" file→none`,
		`added "opaque/new"`,
		`deleted "opaque/old" file→none`,
		`added "pipe" none→fifo cannot`,
		`renamed "sub/arrived" from "moved"`,
	)
	if n := s.Find("A").Notes; len(n) != 1 {
		t.Errorf("notes of A: %q", n)
	}
}

// TestTheHeadingSaysWhatTheCallerDoesNot: when a run began is what review.json says,
// unless the caller names another time.
func TestTheHeadingSaysWhatTheCallerDoesNot(t *testing.T) {
	written, given := time.Unix(1000, 0), time.Unix(2000, 0)
	for _, row := range []struct{ given, want time.Time }{{time.Time{}, written}, {given, given}} {
		f := newField(t, Overlay)
		if err := (workspace.Review{Begun: written, Mode: workspace.ReviewMode(Overlay), Workspace: workspace.Name(f.ws)}).Write(f.dir); err != nil {
			t.Fatal(err)
		}
		s := &Set{Source: Source{Dir: f.dir, Began: row.given}}
		if err := s.readReview(); err != nil || !s.Source.Began.Equal(row.want) {
			t.Errorf("given %v: %v, %v", row.given, s.Source.Began, err)
		}
	}
}
