//go:build linux

package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// harmless lists the settings that a new repository may keep, and the values they may
// have. A key that is not here may name a program, a file to read or a place to send
// to, now or in a later git, and is therefore not inert. Nor is a promisor, a remote
// that git asks automatically for missing objects (git diff is enough); a filter or
// extensions.partialClone also makes a remote a promisor.
var harmless = sync.OnceValue(func() map[string]func(string) bool {
	return map[string]func(string) bool{
		"core.repositoryformatversion": digits,
		"core.filemode":                boolean,
		"core.bare":                    boolean,
		"core.logallrefupdates":        words("always"),
		"core.ignorecase":              boolean,
		"core.symlinks":                boolean,
		"core.precomposeunicode":       boolean,
		"core.autocrlf":                words("input"),
		"core.safecrlf":                words("warn"),
		"core.eol":                     words("lf", "crlf", "native"),
		"core.sparsecheckout":          boolean,
		"core.sparsecheckoutcone":      boolean,
		"core.preloadindex":            boolean,
		"core.untrackedcache":          words("keep"),
		"core.fscache":                 boolean,
		"core.longpaths":               boolean,
		"core.quotepath":               boolean,
		"core.compression":             digits,
		"core.fsmonitor":               func(v string) bool { return v == "false" },
		"extensions.objectformat":      words("sha1", "sha256"),
		"extensions.refstorage":        words("files", "reftable"),
		"extensions.worktreeconfig":    boolean, // config.worktree is judged as a config of its own
		"extensions.preciousobjects":   boolean,
		"extensions.relativeworktrees": boolean,
		"remote.*.url":                 harmlessURL,
		"remote.*.pushurl":             harmlessURL,
		"remote.*.fetch":               refspec,
		"remote.*.push":                refspec,
		"remote.*.tagopt":              words("--tags", "--no-tags"),
		"remote.*.promisor":            isFalse,
		"remote.*.prune":               boolean,
		"remote.*.mirror":              boolean,
		"remote.pushdefault":           remoteName,
		"branch.*.remote":              remoteName,
		"branch.*.pushremote":          remoteName,
		"branch.*.merge":               refspec,
		"branch.*.rebase":              words("merges", "interactive"),
		"branch.autosetupmerge":        words("always", "inherit", "simple"),
		"branch.autosetuprebase":       words("never", "local", "remote", "always"),
		"user.name":                    text,
		"user.email":                   text,
		"user.useconfigonly":           boolean,
		"submodule.*.url":              harmlessURL,
		"submodule.*.active":           boolean,
		"submodule.*.update":           words("checkout", "merge", "rebase", "none"),
		"submodule.*.branch":           remoteName,
		"submodule.active":             remoteName,
		"submodule.recurse":            boolean,
		"init.defaultbranch":           remoteName,
		"pull.rebase":                  words("merges"),
		"pull.ff":                      words("only"),
		"push.default":                 words("nothing", "current", "upstream", "simple", "matching"),
		"push.autosetupremote":         boolean,
		"fetch.prune":                  boolean,
		"merge.ff":                     words("only"),
		"rebase.autostash":             boolean,
		"rerere.enabled":               boolean,
		"commit.gpgsign":               func(v string) bool { return v == "false" },
		"tag.gpgsign":                  func(v string) bool { return v == "false" },
		"gc.auto":                      digits,
		"gc.autodetach":                boolean,
		"maintenance.auto":             boolean,
		"index.version":                digits,
		"pack.threads":                 digits,
		"feature.manyfiles":            boolean,
		"protocol.version":             digits,
		"receive.denycurrentbranch":    words("ignore", "warn", "refuse", "updateinstead"),
		"receive.denynonfastforwards":  boolean,
		"lfs.repositoryformatversion":  digits,
	}
})

var (
	digitsRE = pattern(`^-?[0-9]{1,6}$`)
	nameRE   = pattern(`^[A-Za-z0-9._/][A-Za-z0-9._/+-]*$`)
	refRE    = pattern(`^[+^]?[A-Za-z0-9._/*][A-Za-z0-9._/*@+-]*(:[A-Za-z0-9._/*@+-]*)?$`)
	// schemeRE are the transports that git itself speaks. One with "::" runs
	// git-remote-NAME, and ext:: any command (git-remote-ext(1)); a host or
	// path that begins with a dash has been taken for an option (CVE-2017-1000117).
	schemeRE = pattern(`^(https?|ssh|git|file)://([A-Za-z0-9_.~%+:]+@)?[A-Za-z0-9_.\[\]:]?[A-Za-z0-9_.~%+/:@\[\]=,-]*$`)
	scpRE    = pattern(`^([A-Za-z0-9_.]+@)?[A-Za-z0-9_.][A-Za-z0-9_.-]*:[A-Za-z0-9_.~/][A-Za-z0-9_.~%+/@=, -]*$`)
	pathRE   = pattern(`^[A-Za-z0-9_./~][A-Za-z0-9_.~%+/@=, -]*$`)
)

// pattern is compiled when it is first needed: most runs need none.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

func digits(v string) bool     { return digitsRE().MatchString(v) }
func remoteName(v string) bool { return nameRE().MatchString(v) }
func refspec(v string) bool    { return refRE().MatchString(v) }

func boolean(v string) bool {
	switch strings.ToLower(v) {
	case "true", "yes", "on", "1":
		return true
	}
	return isFalse(v)
}

// isFalse accepts what git takes for a false boolean.
func isFalse(v string) bool {
	switch strings.ToLower(v) {
	case "false", "no", "off", "0", "":
		return true
	}
	return false
}

// words accepts the given words and what boolean accepts.
func words(list ...string) func(string) bool {
	return func(v string) bool {
		for _, w := range list {
			if strings.EqualFold(v, w) {
				return true
			}
		}
		return boolean(v)
	}
}

// text accepts what cannot reach a terminal or a shell as anything but text.
func text(v string) bool {
	return len(v) < 256 && !strings.ContainsAny(v, "`$\\\"'<>|;&\x7f") && !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' })
}

func harmlessURL(v string) bool {
	if strings.Contains(v, "::") || strings.HasPrefix(v, "-") || len(v) > 2048 {
		return false
	}
	if strings.Contains(v, "://") {
		return schemeRE().MatchString(v) && !strings.Contains(v, "://-") && !strings.Contains(v, "@-")
	}
	return pathRE().MatchString(v) || scpRE().MatchString(v)
}

// configHarm reports why a configuration could make git do something of its author's
// choosing; "" means that it cannot. worktree says whether a value of
// core.worktree lies in the workspace, known whether a setting was there before
// the run.
func configHarm(data []byte, worktree func(string) bool, known func(setting) bool) string {
	c, err := parseConfig(data)
	if err != nil {
		return "git could not read it"
	}
	if c.unusual {
		return "holds syntax that git does not write"
	}
	for _, s := range c.settings {
		if why := refusal(s, worktree); why != "" && !known(s) {
			return why
		}
	}
	return ""
}

// refusal says why a setting is not harmless; "" if it is.
func refusal(s setting, worktree func(string) bool) string {
	if s.section == "core" && !s.hasSub && s.key == "worktree" {
		if s.bare || !worktree(s.value) {
			return "core.worktree leaves the workspace"
		}
		return ""
	}
	ok := harmless()[s.pattern()]
	if ok == nil {
		return fmt.Sprintf("sets %q", s.name())
	}
	value := s.value
	if s.bare {
		value = "true"
	}
	if !ok(value) || s.hasSub && !text(s.sub) {
		return fmt.Sprintf("sets %q to %q", s.name(), value)
	}
	return ""
}

// pattern is the name of a setting with a star for its subsection.
func (s setting) pattern() string {
	if s.hasSub {
		return s.section + ".*." + s.key
	}
	return s.section + "." + s.key
}

// sum identifies a setting with its value.
func (s setting) sum() string {
	h := sha256.Sum256([]byte(fmt.Sprintf("%q %q %t", s.name(), s.value, s.bare)))
	return hex.EncodeToString(h[:])
}
