//go:build linux

package review

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/consent"
)

// flag judges a change: rule is the matching entry in the list of names.
func (v *comparison) flag(c *Change, rule *workspace.Rule) {
	if rule != nil {
		reason := rule.Reason
		if c.Kind == Deleted {
			reason = "it is gone, and was there because: " + reason
		}
		c.raise(rule.Pattern, "%s", reason)
	}
	if v.over != nil && (rule == nil || rule.Pattern != v.over.Rule) {
		c.Flags = append(c.Flags, *v.over)
	}
	if v.look.Git() {
		c.raise("git", "it belongs to a repository of git")
	}
	c.inherits = v.l != nil && v.l.upper != nil && handsOnGroup(int(v.l.upper.Fd()))
	c.judge(v.root)
}

// handsOnGroup reports whether what is made in a directory gets its group, and a
// directory its bit: a new one in it says nothing about the run.
func handsOnGroup(dir int) bool {
	var st unix.Stat_t
	return unix.Fstat(dir, &st) == nil && st.Mode&unix.S_ISGID != 0
}

// judge flags a change for what it is, whatever its name means to programs. root is the
// workspace.
func (c *Change) judge(root string) {
	if c.Kind == TypeChanged {
		c.raise("type", "it was %s and is %s", article(c.OldType), article(c.Type))
	}
	if c.OldType == None || c.Kind == Renamed {
		if strings.HasPrefix(string(c.Path), "-") || strings.Contains(string(c.Path), "/-") {
			c.raise("name", "its name begins with a dash: programs take it for an option where a shell expands *")
		}
		if word := consent.LooksLike(string(c.Path)); word != "" {
			c.raise("name", "its name holds letters that look like others: %s", word)
		}
	}
	if why := unclearName(string(c.Path)); why != "" {
		c.raise("name", "its name holds %s", why)
	} else if !utf8.ValidString(string(c.Path)) {
		c.note("its name is no valid UTF-8")
	}
	switch c.Type {
	case File:
		c.judgeFile()
	case Link:
		c.judgeLink(root)
	case FIFO, Socket, Device:
		c.Cannot = fmt.Sprintf("%s is never applied", article(c.Type))
	}
	inherited := c.inherits && c.OldType == None && c.Mode&unix.S_ISUID == 0
	if c.Type == Dir && !inherited && c.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 && c.Mode&^c.OldMode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		c.raise("setuid", "new files in it would belong to its group or owner")
	}
	if c.Kind == ModeChanged && c.Mode&0o777 == c.OldMode&0o777 && c.Cannot == "" {
		c.Cannot = "only setuid, setgid or sticky bits changed, and those are never applied"
	}
}

func (c *Change) judgeFile() {
	if special := c.Mode & (unix.S_ISUID | unix.S_ISGID | unix.S_ISVTX); special != 0 {
		if special&(unix.S_ISUID|unix.S_ISGID) != 0 {
			c.raise("setuid", "it would run with the rights of its owner or group for everybody who starts it")
		}
		c.note("setuid, setgid and sticky bits are not applied")
	}
	executable, was := c.Mode&0o111 != 0, c.OldType == File && c.OldMode&0o111 != 0
	switch {
	case executable && !was && c.OldType == File:
		c.raise("program", "it was there, and became a program")
	case executable && c.program != "" && !was:
		c.raise("program", "a new program: %s", c.program)
	case executable && !was:
		c.raise("program", "a new file that may be executed")
	case executable && c.Kind == Modified:
		c.raise("program", "a program was changed")
	case c.program != "" && c.program != script && c.Kind != ModeChanged:
		c.raise("program", "it holds %s, although it may not be executed", c.program)
	}
}

// judgeLink flags links by their text alone: what is on their way is judged at its own
// path, and nothing is followed.
func (c *Change) judgeLink(root string) {
	target := string(c.Target)
	dir, _ := cut(string(c.Path))
	in := ""
	switch {
	case target == root || strings.HasPrefix(target, root+"/"):
		in = strings.TrimPrefix(strings.TrimPrefix(target, root), "/")
		c.note("it names the workspace by its absolute path")
	case path.IsAbs(target):
		c.raise("link", "programs that follow it leave the workspace")
		return
	default:
		in = path.Join(dir, target)
		if in == ".." || strings.HasPrefix(in, "../") {
			c.raise("link", "programs that follow it leave the workspace")
			return
		}
	}
	parts := strings.Split(target, "/")
	named := false
	for _, p := range parts {
		if p == ".." && named {
			c.raise("link", "it leads back out of a name on its way, which may be a link itself")
			break
		}
		named = named || p != ".." && p != "." && p != ""
	}
	if slices.ContainsFunc(strings.Split(in, "/"), func(p string) bool { return strings.EqualFold(p, ".git") }) {
		c.raise("link", "it leads into a repository of git")
	}
}

func (c *Change) raise(rule, format string, args ...any) {
	c.Flags = append(c.Flags, Flag{rule, fmt.Sprintf(format, args...)})
}

func (c *Change) note(text string) {
	if !slices.Contains(c.Notes, text) {
		c.Notes = append(c.Notes, text)
	}
}

func article(t Type) string {
	switch t {
	case None:
		return "nothing"
	case Dir:
		return "a directory"
	case FIFO:
		return "a named pipe"
	}
	return "a " + t.String()
}

// unclearName says what in a name is displayed differently; "" for nothing.
func unclearName(name string) string {
	for _, r := range name {
		switch {
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029:
			return "control characters"
		case r == utf8.RuneError:
		case unicode.Is(unicode.Bidi_Control, r):
			return "characters that change the direction of text"
		case consent.Unseen(r):
			return "characters that cannot be seen"
		case r != ' ' && unicode.IsSpace(r):
			return "spaces that are not plain ones"
		}
	}
	return ""
}

// text reports whether b is text: UTF-8 without NUL. cut says that b may end
// within a character.
func text(b []byte, cut bool) bool {
	if bytes.IndexByte(b, 0) >= 0 {
		return false
	}
	if cut {
		for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
			if utf8.RuneStart(b[len(b)-i]) {
				if !utf8.FullRune(b[len(b)-i:]) {
					b = b[:len(b)-i]
				}
				break
			}
		}
	}
	return utf8.Valid(b)
}

// script is the description that program returns for text with an interpreter.
const script = "a script with an interpreter line"

// program says what kind of program begins with b; "" for none.
func program(b []byte) string {
	for _, m := range []struct{ magic, what string }{
		{"#!", script},
		{"\x7fELF", "a program or library of Linux (ELF)"},
		{"\xfe\xed\xfa\xce", "a program of macOS (Mach-O)"}, {"\xfe\xed\xfa\xcf", "a program of macOS (Mach-O)"},
		{"\xce\xfa\xed\xfe", "a program of macOS (Mach-O)"}, {"\xcf\xfa\xed\xfe", "a program of macOS (Mach-O)"},
		{"\xca\xfe\xba\xbe", "code of Java, or a program of macOS"},
		{"\x00asm", "WebAssembly"},
		{"!<arch>\n", "an archive of object files"},
		{"BC\xc0\xde", "bitcode of LLVM"},
	} {
		if strings.HasPrefix(string(b[:min(len(b), len(m.magic))]), m.magic) {
			return m.what
		}
	}
	if len(b) > 64 && b[0] == 'M' && b[1] == 'Z' {
		at := int(b[60]) | int(b[61])<<8
		if at+4 <= len(b) && string(b[at:at+4]) == "PE\x00\x00" {
			return "a program or library of Windows (PE)"
		}
	}
	return ""
}

// noteCase notes new names that differ from a neighbour only in case, or in what
// some file systems ignore: there, one would be the other.
func (v *comparison) noteCase() error {
	if len(v.fresh) == 0 {
		return nil
	}
	folded := map[string][]string{}
	mark := func(n string) {
		k := strings.ToLower(n)
		if list := folded[k]; !slices.Contains(list, n) && len(list) < 8 {
			folded[k] = append(list, n)
		}
	}
	for _, n := range v.fresh {
		mark(n)
	}
	if v.which == both {
		err := v.l.rewind()
		if err == nil {
			err = v.l.oldNames(func(n string) error {
				if _, ok := folded[strings.ToLower(n)]; ok {
					mark(n)
				}
				return nil
			})
		}
		if err != nil {
			return v.listError(err)
		}
	}
	for _, c := range v.found {
		dir, n := cut(string(c.Path))
		if c.OldType != None || dir != v.path {
			continue
		}
		for _, other := range folded[strings.ToLower(n)] {
			if other != n {
				c.note(fmt.Sprintf("%q differs from it only in case", other))
			}
		}
	}
	return nil
}
