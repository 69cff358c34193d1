//go:build linux

package workspace

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	floortext "holdfast.dev/holdfast/internal/floor/text"
)

// UserGit is what of the user's own git configuration is taken over into a run: settings
// that neither execute, include, redirect nor name a file. The zero value is nothing.
type UserGit struct {
	Config []byte // a configuration file
	Ignore []byte // what git ignores in every repository (gitignore(5))

	// Undecided says of an identity why it is not taken over: "by includeIf hasconfig", of
	// which it is not known here whether it holds, or "in PATH, which …"; "" for none.
	Undecided string
}

// passed are the settings that are taken over, and the values that they may have. A text
// is quoted when it is written. Each has one value: the last one counts.
var passed = map[string]func(string) bool{
	"user.name": plain, "user.email": plain, "user.useconfigonly": boolean,
	"author.name": plain, "author.email": plain, "committer.name": plain, "committer.email": plain,
	"init.defaultbranch": remoteName,
	"core.autocrlf":      words("input"), "core.eol": words("lf", "crlf", "native"), "core.safecrlf": words("warn"),
	"core.quotepath": boolean, "core.abbrev": words("auto", "no", "7", "8", "9", "10", "11", "12"), "core.whitespace": plain,
	"pull.rebase": words("merges"), "pull.ff": words("only"),
	"push.default": words("nothing", "current", "upstream", "simple", "matching"), "push.autosetupremote": boolean, "push.followtags": boolean,
	"fetch.prune": boolean, "fetch.prunetags": boolean,
	"merge.ff": words("only"), "merge.conflictstyle": words("merge", "diff3", "zdiff3"),
	"rebase.autostash": boolean, "rebase.autosquash": boolean, "rebase.updaterefs": boolean,
	"rerere.enabled": boolean, "rerere.autoupdate": boolean,
	"branch.autosetupmerge": words("always", "inherit", "simple"), "branch.autosetuprebase": words("never", "local", "remote", "always"),
	"branch.sort": sortKey, "tag.sort": sortKey,
	"diff.algorithm": words("default", "myers", "minimal", "patience", "histogram"), "diff.renames": words("copies", "copy"),
	"commit.verbose": boolean, "commit.cleanup": words("strip", "whitespace", "verbatim", "scissors", "default"),
	"status.showuntrackedfiles": words("no", "normal", "all"), "submodule.recurse": boolean,
	"color.ui": words("always", "auto", "never"),
}

var unquotedRE = pattern(`^[A-Za-z0-9_./:@+*-]+$`)

var sortRE = pattern(`^-?[a-z:]{1,40}$`)

func sortKey(v string) bool { return sortRE().MatchString(v) }

// plain accepts a text in one line.
func plain(v string) bool {
	return v != "" && len(v) < 256 && !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' })
}

// maxIncluded bounds how many files the user's configuration may consist of, and
// maxIgnore the size in bytes of the list of what is ignored.
const (
	maxIncluded = 64
	maxIgnore   = 64 << 10
)

// ReadUserGit reads the git configuration of the user and of the machine as git does in
// the first of the trees, which the conditions of includeIf are about. It reads nothing in
// the trees but whether it has an identity: a run can write there, and whoever wrote that
// would choose what else is read.
func ReadUserGit(home string, trees []string) UserGit {
	r := userGit{home: home, trees: trees, values: map[string]string{}}
	if len(trees) > 0 {
		r.gitDirs = gitDirs(trees[0])
	}
	global := append(places(home, ".config/git/config"), filepath.Join(home, ".gitconfig"))
	if named := os.Getenv("GIT_CONFIG_GLOBAL"); named != "" {
		global = []string{named}
	}
	r.file("/etc/gitconfig")
	for _, name := range global {
		r.file(name)
	}
	u := UserGit{Config: r.write(), Undecided: r.undecided}
	ignores := places(home, ".config/git/ignore")
	if r.ignore != "" {
		ignores = []string{r.ignore}
	}
	if data, ok := r.read(ignores[len(ignores)-1], maxIgnore); ok && !bytes.Contains(data, []byte{0}) {
		u.Ignore = data
	}
	return u
}

// userGit is a configuration while it is read.
type userGit struct {
	home   string
	trees  []string
	files  int
	open   []string // files that include the next one
	values map[string]string
	ignore string // absolute path that core.excludesFile of the user's own file names; "" for none

	gitDirs   []string // names of the repository's git directory; none without trees
	undecided string   // see UserGit
}

func (r *userGit) file(name string) {
	data, ok := r.read(name, MaxConfig)
	if r.files++; !ok || r.files > maxIncluded || slices.Contains(r.open, name) {
		return
	}
	c, err := parseConfig(data)
	if err != nil {
		return // git refuses to work with such a file
	}
	r.open = append(r.open, name)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	for _, s := range c.settings {
		switch {
		case s.section == "include" && !s.hasSub && s.key == "path",
			s.section == "includeif" && s.hasSub && s.key == "path" && r.matches(s.sub, path.Dir(name)):
			if at := target(path.Dir(name), s.value, r.home); at != "" {
				r.file(at)
			}
		case s.section == "includeif" && s.hasSub && s.key == "path":
			r.noteUndecided(s, path.Dir(name))
		case !s.hasSub:
			r.set(s, path.Dir(name))
		}
	}
}

func (r *userGit) set(s setting, dir string) {
	value := s.value
	if s.bare {
		value = "true"
	}
	name := s.name()
	if name == "core.excludesfile" && len(r.open) == 1 { // what is included may be less the user's own
		r.ignore = target(dir, value, r.home)
	}
	if ok := passed[name]; ok != nil && ok(value) {
		r.values[name] = value
	}
}

// noteUndecided notes a condition on what the repository says where its file has an
// identity.
func (r *userGit) noteUndecided(s setting, dir string) {
	kind, _, _ := strings.Cut(s.sub, ":")
	at := target(dir, s.value, r.home)
	if at == "" || kind != "hasconfig" && kind != "onbranch" {
		return
	}
	if data, _ := r.read(at, MaxConfig); hasIdentity(data) {
		r.undecided = "by includeIf " + kind
	}
}

// hasIdentity reports whether a configuration names the user.
func hasIdentity(data []byte) bool {
	c, err := parseConfig(data)
	return err == nil && slices.ContainsFunc(c.settings, func(s setting) bool { return s.name() == "user.name" || s.name() == "user.email" })
}

// gitDirs are the names by which git compares the git directory of a tree with a condition:
// what the .git file of a worktree or submodule names, if that names the tree in turn, else
// .git, also as the user's shell has it, with links.
func gitDirs(tree string) []string {
	out := []string{tree + "/.git"}
	top, err := openResolved(tree, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return out
	}
	defer unix.Close(top)
	if gitdir, why := openPointer(top, top, ".git", "gitdir: "); why == "" {
		defer unix.Close(gitdir)
		at, err := fdPath(gitdir)
		own, _ := new(scan).submoduleOf(top, gitdir, at)
		if err == nil && (own != "" || namesBack(gitdir, top, ".git")) {
			return []string{at}
		}
	}
	for dir := os.Getenv("PWD"); len(dir) > 1 && path.IsAbs(dir); dir = path.Dir(dir) {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		same := sameFile(fd, top)
		unix.Close(fd)
		if same {
			return append(out, path.Clean(dir)+"/.git")
		}
	}
	return out
}

// matches reports whether a condition of includeIf holds for the repository
// (git-config(1)). Conditions on what a repository says do not hold.
func (r *userGit) matches(condition, dir string) bool {
	kind, pattern, _ := strings.Cut(condition, ":")
	if pattern == "" || kind != "gitdir" && kind != "gitdir/i" {
		return false
	}
	switch {
	case strings.HasPrefix(pattern, "~/"):
		pattern = r.home + pattern[1:]
	case strings.HasPrefix(pattern, "./"):
		pattern = dir + pattern[1:]
	case !path.IsAbs(pattern):
		pattern = "**/" + pattern
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	expr := "^" + strings.NewReplacer(`/\*\*/`, `/(.*/)?`, `\*\*`, `.*`, `\*`, `[^/]*`, `\?`, `[^/]`).Replace(regexp.QuoteMeta(pattern)) + "$"
	expr = strings.Replace(expr, `^.*/`, `^(.*/)?`, 1)
	if kind == "gitdir/i" {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	return err == nil && slices.ContainsFunc(r.gitDirs, re.MatchString)
}

// write writes the settings as a file that git reads.
func (r *userGit) write() []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		section, key, _ := strings.Cut(name, ".")
		b.WriteString("[" + section + "]\n\t" + key + " = " + quoteValue(r.values[name]) + "\n")
	}
	return b.Bytes()
}

// quoteValue writes a value of one line so that git reads the same one.
func quoteValue(v string) string {
	if unquotedRE().MatchString(v) {
		return v
	}
	return `"` + escapeValue(v) + `"`
}

func escapeValue(v string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) }

// read reads a file of the user's, unless it lies in a tree that the run can write to.
func (r *userGit) read(name string, limit int64) ([]byte, bool) {
	data, at, ok := readOwn(name, limit)
	if ok && boundary.InTrees(at, r.trees) {
		if hasIdentity(data) {
			r.undecided = "in " + floortext.Word(name) + ", which programs inside can change,"
		}
		return nil, false
	}
	return data, ok
}

// readOwn reads a regular file of the user's, where links are the user's own, and returns
// its path without them. A device or pipe is not read, nor what is larger than limit.
func readOwn(name string, limit int64) (data []byte, at string, ok bool) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, "", false
	}
	defer f.Close()
	at, perr := fdPath(int(f.Fd()))
	st, err := f.Stat()
	if err != nil || perr != nil || !st.Mode().IsRegular() || st.Size() > limit {
		return nil, "", false
	}
	data, err = io.ReadAll(io.LimitReader(f, limit+1))
	return data, at, err == nil && int64(len(data)) <= limit
}
