//go:build linux

package exposure

import (
	"path"
	"strings"

	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/floor/text"
)

// git reads the configurations that git would, without starting git: the
// system's, the user's and the workspace's.
func (t *taker) git() {
	files := []string{"/etc/gitconfig", path.Join(t.Home, ".gitconfig"), path.Join(t.base("XDG_CONFIG_HOME", ".config"), "git/config")}
	if t.Dir != "" {
		files = append(files, path.Join(t.Dir, ".git/config"))
	}
	for _, name := range files {
		if !t.canAccess(name, sys.MayRead) {
			continue
		}
		content, err := t.content(name, fileMost)
		if err != nil {
			continue
		}
		t.gitFile(name, string(content))
	}
}

var inURL = pattern(`://[^/\s:@]*:[^/\s@]+@`)

func (t *taker) gitFile(name, content string) {
	for _, s := range gitSettings(content) {
		key := s.section + "." + s.key
		switch {
		case strings.HasPrefix(key, "credential") && s.key == "helper" && s.value != "":
			f := Finding{Check: "git-helper", Level: Medium, What: "a credential helper of git", Object: name, Detail: []string{helperName(s.value)}}
			if strings.HasPrefix(s.value, "store") {
				f.Level = High
			}
			t.add(f)
		case s.key == "extraheader" && strings.Contains(strings.ToLower(s.value), "authorization"):
			t.add(Finding{Check: "git-url", Level: High, What: "a login in a header of requests", Object: name, Detail: tokens(s.value)})
		case inURL().MatchString(s.value) || inURL().MatchString(s.section):
			t.add(Finding{Check: "git-url", Level: High, What: "a password in an address", Object: name, Detail: tokens(s.value)})
		}
	}
}

// helperName is the program of a helper, without its arguments, which could
// contain anything.
func helperName(value string) string {
	name := strings.TrimPrefix(strings.TrimSpace(value), "!")
	if fields := strings.Fields(name); len(fields) > 0 {
		name = path.Base(fields[0])
	}
	return text.Cut(name, 64)
}
