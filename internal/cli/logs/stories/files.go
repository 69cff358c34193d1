package stories

import (
	"fmt"
	"io"
	"strings"

	"holdfast.dev/holdfast/internal/cli/lines"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

// fileFilter is which paths are listed, and how.
type fileFilter struct{ written, private, read, removed, refused, null bool }

func (f fileFilter) any() bool { return f.written || f.private || f.read || f.removed || f.refused }

func (f fileFilter) wants(file *story.File) bool {
	return !f.any() || (f.written && !file.Private || f.private && file.Private) && file.Written > 0 && !file.Gone || f.read && file.Read > 0 ||
		f.removed && file.Removed > 0 || f.refused && file.Refused > 0
}

func (f fileFilter) pick(files []*story.File) []*story.File {
	out := []*story.File{}
	for _, file := range files {
		if f.wants(file) {
			out = append(out, file)
		}
	}
	return out
}

func (f fileFilter) show(a *app, w io.Writer, t Session) {
	names := programNames(t.Story)
	for _, file := range f.pick(t.Files) {
		switch {
		case f.null:
			io.WriteString(w, file.Path+"\x00")
		case f.any():
			fmt.Fprintln(w, text.Word(file.Path))
		default:
			fmt.Fprintf(w, "%-30s  %s%s\n", fileActions(file), text.Word(file.Path), a.Tint(command.Grey, programsText(names, file.By)))
		}
	}
}

// fileActions is what was done to a file.
func fileActions(f *story.File) string {
	var parts []string
	for _, p := range []struct {
		word string
		n    uint64
	}{{"refused", f.Refused}, {"read", f.Read}, {"written", f.Written}, {"changed", f.Changed}, {"removed", f.Removed}} {
		if p.n > 0 {
			parts = append(parts, p.word+words.Times(p.n))
		}
	}
	if f.Private && !f.Gone {
		parts = append(parts, "not on the host")
	}
	return strings.Join(parts, ", ")
}

// programNames is what each program is called.
func programNames(s *story.Story) map[uint64]string {
	names := map[uint64]string{}
	for _, p := range s.Programs {
		names[p.Exec] = lines.ProgramName(p.Executable, p.Argv, p.Asked)
	}
	return names
}

// programsText names programs, each name once.
func programsText(names map[uint64]string, execs []uint64) string {
	var list []string
	seen := map[string]bool{}
	for _, e := range execs {
		if n := names[e]; n != "" && !seen[n] {
			seen[n] = true
			list = append(list, text.Word(n))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "  by " + strings.Join(list, ", ")
}
