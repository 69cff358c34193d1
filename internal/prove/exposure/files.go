//go:build linux

package exposure

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// parts are all pieces of the inventory, in the order of the checks.
func parts() []part {
	var out []part
	for _, s := range stores {
		out = append(out, part{s.title, func(t *taker) { t.store(s) }})
	}
	return append(out,
		part{"secrets in the workspace", (*taker).workspace},
		part{"secrets of the system", (*taker).systemSecrets},
		part{"git configurations", (*taker).git},
		part{"variables", (*taker).variables},
		part{"sockets", (*taker).sockets},
		part{"ssh agents", (*taker).agents},
		part{"rights", (*taker).rights},
		part{"sudo", (*taker).sudo},
		part{"PATH", (*taker).path},
		part{"files that are obeyed", (*taker).startup},
		part{"processes", (*taker).processes},
		part{"services", (*taker).ports},
		part{"abstract sockets", (*taker).abstract},
		part{"cloud", (*taker).metadata},
		part{"kernel settings", (*taker).kernel},
		part{"continuous integration", (*taker).jobs},
	)
}

// store looks for the files of one store.
func (t *taker) store(s store) {
	var done []string
	for _, pattern := range s.paths {
		for _, name := range t.expand(pattern) {
			if !slices.Contains(done, name) {
				done = append(done, name)
				t.file(s, name)
			}
		}
	}
}

// file adds a file that the account may read and that holds a secret.
func (t *taker) file(s store, name string) {
	info, err := os.Stat(t.real(name))
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || !t.canAccess(name, sys.MayRead) {
		return
	}
	found := inspection{secret: true}
	if s.inspect != nil {
		content, err := t.content(name, fileMost)
		if err != nil {
			t.note("%s: %v", name, err)
			return
		}
		found = s.inspect(content)
		if !found.secret && info.Size() > fileMost {
			found = inspection{secret: true, detail: []string{"too large to inspect"}}
		}
		if found.secret && s.id != "history" {
			found.detail = append(found.detail, tokens(string(content[:min(len(content), 64<<10)]))...)
		}
	}
	if !found.secret {
		return
	}
	level := s.level
	if found.level != "" {
		level = found.level
	}
	t.add(Finding{Check: s.id, Level: level, What: s.title, Object: name, Detail: append(t.describe(info), found.detail...)})
}

// Names of workspace files that hold secrets, and suffixes of example files.
var (
	dotenvs  = []string{".env", ".env.*", ".envrc", "*.pem", "*.p12", "*.pfx", "*.tfstate", "credentials.json", "service-account*.json", ".npmrc", ".pypirc", ".netrc"}
	examples = []string{".example", ".sample", ".template", ".dist", ".pub", ".defaults"}
)

// Bounds of the walk through a workspace.
const (
	treeDeep = 3
	treeMost = 20000 // names
)

// workspace looks for files in the workspace whose names suggest secrets.
func (t *taker) workspace() {
	if t.Dir == "" {
		return
	}
	var found []string
	left := treeMost
	t.walk(t.Dir, treeDeep, &left, &found)
	if left <= 0 {
		t.note("%s: more than %d names; secrets deep in it may be missing", t.Dir, treeMost)
	}
	slices.Sort(found)
	for _, name := range slices.Compact(found) {
		info, err := os.Stat(t.real(name))
		if err != nil || !t.canAccess(name, sys.MayRead) || info.Mode().IsRegular() && info.Size() == 0 {
			continue
		}
		f := Finding{Check: "dotenv", Level: Medium, What: "a file with the name of a secret", Object: name, Detail: t.describe(info)}
		if content, err := t.content(name, 64<<10); err == nil {
			if kinds := tokens(string(content)); len(kinds) > 0 || strings.Contains(string(content), "PRIVATE KEY") {
				f.Level, f.Detail = High, append(f.Detail, kinds...)
			}
		}
		t.add(f)
	}
}

func (t *taker) walk(dir string, deep int, left *int, found *[]string) {
	if t.ctx.Err() != nil {
		return
	}
	for _, name := range t.names(dir) {
		if *left--; *left <= 0 {
			return
		}
		full := path.Join(dir, name)
		info, err := os.Lstat(t.real(full))
		switch {
		case err != nil:
		case info.IsDir() && deep > 0 && name != "node_modules" && name != ".git":
			t.walk(full, deep-1, left, found)
		case info.Mode().IsRegular() && t.secretName(name):
			*found = append(*found, full)
		}
	}
}

func (t *taker) secretName(name string) bool {
	for _, end := range examples {
		if strings.HasSuffix(name, end) {
			return false
		}
	}
	return slices.ContainsFunc(slices.Concat(dotenvs, t.Hidden), func(p string) bool { ok, _ := path.Match(p, name); return ok })
}

// systemSecrets looks for secrets of the system that this account may read. Root
// may read all of them; another check says that.
func (t *taker) systemSecrets() {
	if t.UID == 0 {
		return
	}
	for _, name := range systemSecrets {
		t.systemSecret(name)
		for _, one := range t.names(name) {
			if strings.HasSuffix(one, "_key") || name == "/etc/ssl/private" || name == "/etc/wireguard" {
				t.systemSecret(path.Join(name, one))
			}
		}
	}
}

func (t *taker) systemSecret(name string) {
	info, err := os.Stat(t.real(name))
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || !t.canAccess(name, sys.MayRead) {
		return
	}
	t.add(Finding{Check: "system-secret", Level: High, What: "a secret of the system that this account may read", Object: name, Detail: t.describe(info)})
}

// path checks the directories in PATH.
func (t *taker) path() {
	behind := false // a system directory came before
	for i, dir := range strings.Split(t.env("PATH"), ":") {
		if i == 256 {
			t.note("PATH: the entries after the first 256 were left out")
			return
		}
		if !path.IsAbs(dir) {
			t.add(Finding{Check: "path-relative", Level: High, What: "a relative entry of PATH", Object: dir})
			continue
		}
		dir = path.Clean(dir)
		if t.canAccess(dir, sys.MayWrite|sys.MayExecute) && t.UID != 0 {
			f := Finding{Check: "path", Level: Medium, What: "a directory of PATH that can be written", Object: dir}
			if !behind {
				f.Level, f.Detail = High, []string{"before the system's own"}
			}
			t.add(f)
		}
		behind = behind || dir == "/usr/bin" || dir == "/bin"
	}
}

// startup looks for files that the account executes or obeys later.
func (t *taker) startup() {
	for _, name := range executed {
		full := path.Join(t.Home, name)
		info, err := os.Lstat(t.real(full))
		if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice|fs.ModeSocket) != 0 || !t.canAccess(full, sys.MayWrite) {
			continue
		}
		t.add(Finding{Check: "startup", Level: Medium, What: "obeyed by the account later", Object: full})
	}
}
