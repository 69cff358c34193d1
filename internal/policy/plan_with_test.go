package policy

import (
	"errors"
	"slices"
	"testing"
)

func TestWith(t *testing.T) {
	p := Plan{Workspace: "/ws", File: FileID{1, 2}, Env: []Env{{Name: "A", Value: "user"}},
		Paths: []PathRule{{Path: "/b", Access: Read, At: "/l"}, {Path: "/d", Access: Write}}}
	got, err := p.With(Additions{
		Files:   map[string]FileID{"/ws": {1, 2}, "/d": {3, 4}, "/none": {5, 6}},
		Paths:   []PathRule{{Path: "/c", Access: Write}, {Path: "/b", Access: Copy}},
		Protect: []Protected{{Path: ".git/hooks"}}, Hidden: []Protected{{Root: "/b", Path: "."}},
		Env: []Env{{Name: "A", Value: "ours"}, {Name: "B"}}, Notes: []string{"note"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []PathRule{{Path: "/b", Access: Copy, At: "/l"}, {Path: "/c", Access: Write}, {Path: "/d", Access: Write, File: FileID{3, 4}}}
	if !slices.Equal(got.Paths, want) || len(got.Protect) != 1 || len(got.Hidden) != 1 || len(got.Notes) != 1 {
		t.Errorf("got %+v", got)
	}
	if !slices.Equal(got.Env, []Env{{Name: "A", Value: "user"}, {Name: "B"}}) {
		t.Errorf("the variable of the user does not stay: %+v", got.Env)
	}
	if len(p.Paths) != 2 || p.Paths[0].Access != Read || p.Paths[1].File != (FileID{}) || len(p.Env) != 1 {
		t.Errorf("the plan that it came from changed: %+v", p)
	}
	_, err = got.With(Additions{Files: map[string]FileID{"/d": {7, 8}}})
	if replaced := (*ReplacedError)(nil); !errors.As(err, &replaced) || replaced.Path != "/d" {
		t.Errorf("another directory in the place of one that was judged: %v", err)
	}
}

func TestWithRefuses(t *testing.T) {
	for name, a := range map[string]Additions{
		"a path that is not absolute": {Paths: []PathRule{{Path: "c", Access: Read}}},
		"a path that hides":           {Paths: []PathRule{{Path: "/c"}}},
		"a device":                    {Paths: []PathRule{{Path: "/c", Access: Device}}},
		"a row outside of its tree":   {Protect: []Protected{{Path: "../x"}}},
		"a row of nothing":            {Hidden: []Protected{{Root: "/b"}}},
		"no variable":                 {Env: []Env{{Name: "A=B"}}},
	} {
		if _, err := (Plan{Workspace: "/ws"}).With(a); err == nil {
			t.Errorf("%s was added", name)
		}
	}
}
