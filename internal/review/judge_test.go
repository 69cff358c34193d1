//go:build linux

package review

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

const (
	becameProgram = "program: it was there, and became a program"
	newProgram    = "program: a new program: a script with an interpreter line"
	newExecutable = "program: a new file that may be executed"
	newProgramOld = "program: a program was changed"
	hiddenProgram = "program: it holds a program or library of Linux (ELF), although it may not be executed"
	runsAsOwner   = "setuid: it would run with the rights of its owner or group for everybody who starts it"
	givesFiles    = "setuid: new files in it would belong to its group or owner"
	bitsDropped   = "note: setuid, setgid and sticky bits are not applied"
	onlySpecial   = "cannot: only setuid, setgid or sticky bits changed, and those are never applied"
	leaves        = "link: programs that follow it leave the workspace"
	leadsBack     = "link: it leads back out of a name on its way, which may be a link itself"
	intoGit       = "link: it leads into a repository of git"
	absolute      = "note: it names the workspace by its absolute path"
	dash          = "name: its name begins with a dash: programs take it for an option where a shell expands *"
)

// judged returns the flags, the notes and the refusal of c in short.
func judged(c *Change) (all []string) {
	c.judge("/ws")
	for _, f := range c.Flags {
		all = append(all, f.Rule+": "+f.Reason)
	}
	for _, n := range c.Notes {
		all = append(all, "note: "+n)
	}
	if c.Cannot != "" {
		all = append(all, "cannot: "+c.Cannot)
	}
	return all
}

// TestFlagsOfPrograms: what may be executed is flagged when it is new, when it became
// so and when its content changed; a new name or other bits alone say nothing.
func TestFlagsOfPrograms(t *testing.T) {
	elf := program([]byte("\x7fELF"))
	for i, row := range []struct {
		c    Change
		want []string
	}{
		{Change{Kind: Added, Mode: 0o644}, nil},
		{Change{Kind: Added, Mode: 0o755}, []string{newExecutable}},
		{Change{Kind: Added, Mode: 0o755, program: script}, []string{newProgram}},
		{Change{Kind: Added, Mode: 0o644, program: script}, nil},
		{Change{Kind: Added, Mode: 0o644, program: elf}, []string{hiddenProgram}},
		{Change{Kind: Modified, OldType: File, OldMode: 0o644, Mode: 0o755}, []string{becameProgram}},
		{Change{Kind: ModeChanged, OldType: File, OldMode: 0o644, Mode: 0o755}, []string{becameProgram}},
		{Change{Kind: Modified, OldType: File, OldMode: 0o755, Mode: 0o755}, []string{newProgramOld}},
		{Change{Kind: Modified, OldType: File, OldMode: 0o755, Mode: 0o755, program: script}, []string{newProgramOld}},
		{Change{Kind: Modified, OldType: File, OldMode: 0o755, Mode: 0o644}, nil},
		{Change{Kind: Renamed, OldType: File, OldMode: 0o755, Mode: 0o755}, nil},
		{Change{Kind: ModeChanged, OldType: File, OldMode: 0o755, Mode: 0o700}, nil},
		{Change{Kind: ModeChanged, OldType: File, OldMode: 0o644, Mode: 0o600, program: elf}, nil},
		{Change{Kind: Modified, OldType: File, OldMode: 0o644, Mode: 0o644, program: elf}, []string{hiddenProgram}},
		{Change{Kind: Modified, OldType: File, OldMode: 0o644, Mode: 0o644, program: script}, nil},
		{Change{Kind: TypeChanged, OldType: Link, OldMode: 0o777, Mode: 0o755}, []string{"type: it was a link and is a file", newExecutable}},
		{Change{Kind: TypeChanged, OldType: Link, OldMode: 0o777, Mode: 0o755, program: script}, []string{"type: it was a link and is a file", newProgram}},
		{Change{Kind: Added, Mode: 0o4644}, []string{runsAsOwner, bitsDropped}},
		{Change{Kind: Added, Mode: 0o2644}, []string{runsAsOwner, bitsDropped}},
		{Change{Kind: Added, Mode: 0o1644}, []string{bitsDropped}},
		{Change{Kind: ModeChanged, OldType: File, OldMode: 0o644, Mode: 0o1644}, []string{bitsDropped, onlySpecial}},
		{Change{Kind: ModeChanged, OldType: File, OldMode: 0o644, Mode: 0o1600}, []string{bitsDropped}},
		{Change{Kind: Modified, OldType: File, OldMode: 0o644, Mode: 0o1644}, []string{bitsDropped}},
	} {
		row.c.Path, row.c.Type = "a", File
		if got := judged(&row.c); !slices.Equal(got, row.want) {
			t.Errorf("row %d: %q, want %q", i, got, row.want)
		}
	}
}

// TestFlagsOfDirectories: a bit that hands on an owner or a group is flagged when the
// run set it, and not when the directory above handed it on or it was set before.
func TestFlagsOfDirectories(t *testing.T) {
	for i, row := range []struct {
		c    Change
		want []string
	}{
		{Change{Kind: Added, Type: Dir, Mode: 0o755}, nil},
		{Change{Kind: Added, Type: Dir, Mode: 0o1755}, nil},
		{Change{Kind: Added, Type: Dir, Mode: 0o2755}, []string{givesFiles}},
		{Change{Kind: Added, Type: Dir, Mode: 0o4755}, []string{givesFiles}},
		{Change{Kind: Added, Type: Dir, Mode: 0o2755, inherits: true}, nil},
		{Change{Kind: Added, Type: Dir, Mode: 0o6755, inherits: true}, []string{givesFiles}},
		{Change{Kind: ModeChanged, Type: Dir, OldType: Dir, OldMode: 0o755, Mode: 0o2700, inherits: true}, []string{givesFiles}},
		{Change{Kind: ModeChanged, Type: Dir, OldType: Dir, OldMode: 0o2755, Mode: 0o2700}, nil},
		{Change{Kind: ModeChanged, Type: Dir, OldType: Dir, OldMode: 0o2755, Mode: 0o6700}, []string{givesFiles}},
		{Change{Kind: ModeChanged, Type: Dir, OldType: Dir, OldMode: 0o755, Mode: 0o1755}, []string{onlySpecial}},
		{Change{Kind: Added, Type: Socket, Mode: 0o2755}, []string{"cannot: a socket is never applied"}},
		{Change{Kind: Added, Type: Device}, []string{"cannot: a device is never applied"}},
		{Change{Kind: ModeChanged, Type: FIFO, OldType: FIFO, OldMode: 0o644, Mode: 0o1644}, []string{"cannot: a named pipe is never applied"}},
		{Change{Kind: TypeChanged, Type: Dir, OldType: FIFO}, []string{"type: it was a named pipe and is a directory"}},
		{Change{Kind: TypeChanged, Type: None, OldType: Dir}, []string{"type: it was a directory and is nothing"}},
	} {
		row.c.Path = "a"
		if got := judged(&row.c); !slices.Equal(got, row.want) {
			t.Errorf("row %d: %q, want %q", i, got, row.want)
		}
	}
}

// TestFlagsOfLinks: a link is judged by its text and by where it is.
func TestFlagsOfLinks(t *testing.T) {
	for _, row := range []struct {
		path, target string
		want         []string
	}{
		{"l", "a", nil},
		{"l", "./a/b", nil},
		{"l", "..a", nil},
		{"d/l", "../x", nil},
		{"d/l", "./../x", nil},
		{"d/l", "..", nil},
		{"l", "/ws", []string{absolute}},
		{"l", "/ws/a", []string{absolute}},
		{"l", "/ws/.git/hooks/x", []string{intoGit, absolute}},
		{"l", "/wsx", []string{leaves}},
		{"l", "/etc/.git", []string{leaves}},
		{"l", "..", []string{leaves}},
		{"l", "../x", []string{leaves}},
		{"d/l", "../../x", []string{leaves}},
		{"l", "a/../b", []string{leadsBack}},
		{"d/l", "../a/../b", []string{leadsBack}},
		{"l", "/ws/../ws/a", []string{leadsBack, absolute}},
		{"l", ".git/config", []string{intoGit}},
		{"d/l", "../x/.GIT", []string{intoGit}},
		{"l", "a.git/x", nil},
		{"l", "x/../.git", []string{leadsBack, intoGit}},
	} {
		c := &Change{Kind: Added, Type: Link, Path: workspace.Name(row.path), Target: workspace.Name(row.target)}
		if got := judged(c); !slices.Equal(got, row.want) {
			t.Errorf("%s -> %s: %q, want %q", row.path, row.target, got, row.want)
		}
	}
}

// TestFlagsOfNames: a name is judged where it is new, by a rename too; what cannot be
// shown as it is, always.
func TestFlagsOfNames(t *testing.T) {
	unseen := func(what string) []string { return []string{"name: its name holds " + what} }
	for i, row := range []struct {
		c    Change
		want []string
	}{
		{Change{Kind: Added, Path: "-rf"}, []string{dash}},
		{Change{Kind: Added, Path: "d/-rf"}, []string{dash}},
		{Change{Kind: Added, Path: "d-/a-rf"}, nil},
		{Change{Kind: Renamed, Path: "-rf", OldType: File}, []string{dash}},
		{Change{Kind: Modified, Path: "-rf", OldType: File}, nil},
		{Change{Kind: Modified, Path: "a\x1bb", OldType: File}, unseen("control characters")},
		{Change{Kind: Modified, Path: "a\x1b\xff", OldType: File}, unseen("control characters")},
		{Change{Kind: Modified, Path: "a\xff", OldType: File}, []string{"note: its name is no valid UTF-8"}},
		{Change{Kind: Modified, Path: "a\ufffd", OldType: File}, nil},
	} {
		row.c.Type = File
		if got := judged(&row.c); !slices.Equal(got, row.want) {
			t.Errorf("row %d: %q, want %q", i, got, row.want)
		}
	}
	const control, turns, hidden, spaces = "control characters", "characters that change the direction of text", "characters that cannot be seen", "spaces that are not plain ones"
	for name, want := range map[string]string{
		"a b~": "", "\x1f": control, "\x7f": control, "\u0085": control, "\u009f": control, "\u2028": control, "\u2029": control,
		"\u00a0": spaces, "\u3000": spaces, "\u200b": hidden, "\u202e": turns, "\u200f": turns, "\xff": "", "\ufffd": "", "\xff\u200b": hidden,
		"\u00a1": "", "\u2027": "", "\u2030": "",
	} {
		if got := unclearName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestWhatIsText: a text that is cut may end within a character, and nowhere else may a
// character be incomplete.
func TestWhatIsText(t *testing.T) {
	for _, row := range []struct {
		b          string
		whole, cut bool
	}{
		{"", true, true}, {"a", true, true}, {"a\x00b", false, false}, {"\u00e9", true, true}, {"a\U0001f600", true, true},
		{"a\xc3", false, true}, {"a\xe2\x82", false, true}, {"a\xf0\x9f\x98", false, true}, {"\xc3", false, true},
		{"a\xff", false, false}, {"a\x82", false, false}, {"\x82\x82\x82\x82", false, false}, {"a\xc3b", false, false}, {"\xe2\x82\x82\x82", false, false},
	} {
		if whole, cut := text([]byte(row.b), false), text([]byte(row.b), true); whole != row.whole || cut != row.cut {
			t.Errorf("%q: whole %t, cut %t", row.b, whole, cut)
		}
	}
}

// TestKindsOfPrograms: a program is known by how it begins; one of Windows by a second
// mark too, because a text may begin with MZ.
func TestKindsOfPrograms(t *testing.T) {
	windows := func(at int, mark string) []byte {
		b := make([]byte, max(at+len(mark), 64))
		copy(b, "MZ")
		b[60], b[61] = byte(at), byte(at>>8)
		copy(b[at:], mark)
		return b
	}
	other := func(at int, c byte) []byte { b := windows(64, "PE\x00\x00"); b[at] = c; return b }
	for i, row := range []struct {
		b    []byte
		want string
	}{
		{[]byte("#!/bin/sh"), "script"}, {[]byte("#"), ""}, {nil, ""}, {[]byte(" #!"), ""}, {[]byte("\x7fELF"), "ELF"}, {[]byte("\x7fEL"), ""},
		{[]byte("\xfe\xed\xfa\xcf"), "macOS"}, {[]byte("\xca\xfe\xba\xbe"), "Java"}, {[]byte("\x00asm"), "WebAssembly"}, {[]byte("!<arch>\n"), "archive"}, {[]byte("BC\xc0\xde"), "bitcode"},
		{windows(64, "PE\x00\x00"), "Windows"}, {windows(0x1234, "PE\x00\x00"), "Windows"}, {windows(64, "PE\x00"), ""}, {windows(64, "NE\x00\x00"), ""},
		{windows(0x1234, "PE\x00\x00")[:0x1234], ""}, {windows(0x1234, "PE\x00\x00")[:64], ""}, {[]byte("MZ"), ""}, {other(0, 'N'), ""}, {other(1, 'A'), ""},
		{windows(60, "")[:64], ""}, {[]byte("MZ" + strings.Repeat(" ", 60)), ""},
	} {
		if got := program(row.b); row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("row %d: %q, want %q", i, got, row.want)
		}
	}
}

// TestNamesThatDifferInCase: the notes of a new name list the neighbours, old and new,
// that differ from it only in case, eight at most, and none of another directory.
func TestNamesThatDifferInCase(t *testing.T) {
	f := newField(t, Overlay).lower("d/Readme=1", "d/keep=1", "e/OTHER=1", "d/gone=1", "README=1")
	f.upper("d/README=1", "d/readme=2", "d/other=1", "d/keep=2", "d/new/ReadMe=1", "d/GONE=1", "d/gone!")
	var many []string
	for i := range 1 << 4 {
		name := []byte("many")
		for bit := range name {
			if i>>bit&1 == 1 {
				name[bit] -= 'a' - 'A'
			}
		}
		many = append(many, "m/"+string(name)+"=1")
	}
	f.upper(many...)
	s := f.collect()
	twin := func(names ...string) (notes []string) {
		for _, n := range names {
			notes = append(notes, fmt.Sprintf("%q differs from it only in case", n))
		}
		return notes
	}
	for path, want := range map[string][]string{
		"d/README": twin("Readme", "readme"), "d/readme": twin("README", "Readme"), "d/other": nil, "d/keep": nil, "d/new/ReadMe": nil, "d/GONE": twin("gone"), "d/gone": nil,
	} {
		c := s.Find(path)
		if c == nil {
			t.Fatalf("no change of %s: %q", path, lines(s))
		}
		got := slices.Clone(c.Notes)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for _, c := range s.Changes {
		if n := len(c.Notes); strings.HasPrefix(string(c.Path), "m/") && n != 7 && n != 8 {
			t.Errorf("%s: %d notes: %q", c.Path, n, c.Notes)
		}
	}
}

// TestFlagsOfWhatLiesBelow: a change has the flag of its own name, that of what it lies
// in unless both are of one rule, and that of a repository.
func TestFlagsOfWhatLiesBelow(t *testing.T) {
	rule := &workspace.Rule{Pattern: "Makefile", Reason: "make runs it"}
	over := &Flag{".vscode", "it lies in it"}
	git := Flag{"git", "it belongs to a repository of git"}
	rules := workspace.DefaultRules()
	for i, row := range []struct {
		kind Kind
		rule *workspace.Rule
		over *Flag
		git  bool
		want []Flag
	}{
		{Modified, nil, nil, false, nil},
		{Modified, rule, nil, false, []Flag{{"Makefile", "make runs it"}}},
		{Deleted, rule, nil, false, []Flag{{"Makefile", "it is gone, and was there because: make runs it"}}},
		{Modified, nil, over, false, []Flag{*over}},
		{Modified, rule, over, false, []Flag{{"Makefile", "make runs it"}, *over}},
		{Modified, &workspace.Rule{Pattern: ".vscode", Reason: "an editor reads it"}, over, false, []Flag{{".vscode", "an editor reads it"}}},
		{Modified, nil, nil, true, []Flag{git}},
	} {
		v := &comparison{collector: &collector{root: "/ws"}, job: job{over: row.over, look: rules.Look()}}
		if row.git {
			v.look = v.look.Repository()
		}
		c := &Change{Kind: row.kind, Path: "a", Type: File, OldType: File}
		if v.flag(c, row.rule); !slices.Equal(c.Flags, row.want) {
			t.Errorf("row %d: %+v", i, c.Flags)
		}
	}
}
