//go:build linux

package workspace

import (
	"os"
	"path"
	"slices"
	"strings"
)

// gitFile is a git configuration file and what its relative paths start from.
type gitFile struct {
	dir  string // of the repository, relative to the root
	name string // absolute path of the file; "" for a repository's own
	home string
	data []byte
	own  bool // read for one repository, not for all
}

// maxConfigs bounds how many configuration files are read, so that files which
// include each other come to an end.
const maxConfigs = 1024

// obeyConfigs protects what git's configuration names in the tree: the hooks
// directory and included files, and what those name.
func (s *scan) obeyConfigs() error {
	slices.Sort(s.tops)
	s.tops = slices.Compact(s.tops)
	files := append(slices.Clone(s.configs), s.shared...)
	extra := len(files) + maxConfigs
	for i := 0; i < len(files); i++ {
		f := files[i]
		c, err := parseConfig(f.data)
		if err != nil {
			s.warn("git configuration in %q cannot be parsed; what it names is not protected", f.dir+f.name)
			continue
		}
		if f.own && f.name == "" {
			s.remember(f.dir, c)
		}
		for _, v := range c.settings {
			if s.all != nil && s.followed > maxFollowed || s.budget.isExhausted() {
				return s.enough()
			}
			switch {
			case v.section == "core" && !v.hasSub && v.key == "hookspath":
				for _, from := range s.startDirs(f) {
					if p := target(from, v.value, f.home); p != "" {
						s.resolve(p, "core.hooksPath", "git runs the hooks in it")
					}
				}
			case (v.section == "include" || v.section == "includeif") && v.key == "path":
				from := string(s.found.Root) + "/" + f.dir
				if f.name != "" {
					from = path.Dir(f.name)
				}
				p := target(from, v.value, f.home)
				if p == "" {
					continue
				}
				s.resolve(p, "include.path", "git reads it like config")
				if data := s.read(p); data != nil && len(files) < extra && s.afford(1, len(data)) {
					files = append(files, gitFile{dir: f.dir, name: p, home: f.home, data: data, own: f.own})
				}
			case refusal(v, func(string) bool { return false }) != "":
				s.programs(f, v)
			}
		}
	}
	return nil
}

// enough ends looking for what is obeyed: by its bounds, which the caller knows, or
// for the time is over.
func (s *scan) enough() error {
	if s.budget.isExhausted() {
		return &BudgetError{At: string(s.found.Root), Files: s.budget.Files()}
	}
	return nil
}

// programs protects files of the tree that a setting's value names: it may be a
// command line that git runs at the top of a worktree.
func (s *scan) programs(f gitFile, v setting) {
	for _, from := range s.startDirs(f) {
		if !s.afford(1, 0) {
			return
		}
		s.protectNamed(v.value, from, f.home, v.section+"."+v.key, "git runs it: its configuration names it")
	}
}

// scriptEnds mark a word without a slash as the name of a program in a command
// line: it is what an interpreter is given.
var scriptEnds = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".sh", ".bash", ".rb", ".pl", ".php", ".lua"}

// interpreters execute the file that the word after them names, whatever its end.
var interpreters = []string{"sh", "bash", "dash", "zsh", "fish", "ksh", "source", ".", "exec", "python", "python3", "node", "bun", "deno", "ruby", "perl", "php", "lua", "env"}

// protectNamed protects the files that the command line names when it is read in the
// directory from. A script that is not there yet is protected from appearing.
func (s *scan) protectNamed(line, from, home, rule, reason string) {
	split := func(line string) []string {
		return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>\"'`!=$,[]", r) })
	}
	unquoted := split(strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(line)) // "$DIR"/run is one word
	words := append(split(line), unquoted...)
	before := ""
	for _, word := range append(words, line) { // a name may hold any of these
		script := slices.Contains(scriptEnds, path.Ext(word))
		wanted := strings.Contains(word, "/") || script || slices.Contains(interpreters, path.Base(before))
		if !strings.HasPrefix(word, "-") {
			before = word // an interpreter may have options
		}
		p := target(from, word, home)
		if p == "" || !wanted || !s.afford(1, 0) {
			continue
		}
		if at := s.follow(p, func(located) {}); at.there && at.st.Mode&typeMask != typeDir || len(at.missing) > 0 && script {
			s.resolve(p, rule, reason)
		}
	}
}

// Limits on what is followed and read to find what is obeyed: the author of the tree
// chose how much there is.
const (
	maxFollowed = 100_000
	maxObeyed   = 64 << 20 // bytes
)

// afford takes from the bounds; false means that they are reached, and that all of
// the tree has to be taken for obeyed. The caller holds mu, or is alone.
func (s *scan) afford(followed, bytes int) bool {
	s.followed, s.obeyed = s.followed+followed, s.obeyed+bytes
	if s.followed <= maxFollowed && s.obeyed <= maxObeyed {
		return true
	}
	if s.all == nil {
		s.all = &Rule{Pattern: "too much", Tier: Deny, Reason: "there are more links, settings and names in them than can be looked at"}
	}
	return false
}

// remember notes the settings of a repository that are not harmless, so that a
// config which the user rewrites during a run is not taken for another's.
func (s *scan) remember(dir string, c config) {
	for _, v := range c.settings {
		if why := refusal(v, func(string) bool { return false }); why != "" {
			if s.found.Settings == nil {
				s.found.Settings = map[Name][]string{}
			}
			s.found.Settings[Name(dir)] = append(s.found.Settings[Name(dir)], v.sum())
		}
	}
}

// startDirs lists the directories that a relative core.hooksPath may start from: the
// place where the hook runs, which is the top of a worktree or, in a bare
// repository, the repository.
func (s *scan) startDirs(f gitFile) []string {
	root := string(s.found.Root) + "/"
	var out []string
	if f.own {
		out = []string{root + f.dir, root + parent(f.dir)}
		for _, p := range s.pointers {
			out = append(out, root+parent(p))
		}
		return out
	}
	for _, t := range s.tops {
		out = append(out, root+t)
	}
	return out
}

// target is the absolute path that a value means; "" for none.
func target(from, value, home string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		if home == "" {
			home = os.Getenv("HOME")
		}
		value = home + "/" + rest
	} else if value != "" && !path.IsAbs(value) {
		value = from + "/" + value
	}
	if !path.IsAbs(value) {
		return ""
	}
	return value
}
