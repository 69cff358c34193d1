//go:build linux

package workspace

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	floortext "holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// maxConfigCopies and maxCopied bound what of a run's configurations is copied. Any other is
// read-only. maxConfigChanges bounds the changes of one that are listed, maxConfigText and
// maxConfigValues what of a setting is offered, and the last two what is kept of one that
// is refused.
const (
	maxConfigCopies  = 128
	maxCopied        = 256 << 10 // bytes of one
	maxConfigChanges = 200
	maxConfigText    = 512 // bytes of a name or value
	maxConfigValues  = 16
	maxRefusedText   = 80 // bytes of a name or value
	maxRefusedValues = 3
)

// ReadConfig reads the git configuration of a protected row. It may be another file than
// the one that was scanned, for git replaces it with each change: what is mounted over is
// compared, and what inside may read is given to it.
func ReadConfig(plan policy.Plan, r policy.Protected) ([]byte, error) {
	name := plan.Within(r)
	fd, err := openResolved(name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", floortext.Word(name), err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("reading %s: %w", floortext.Word(name), err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("reading %s: %w", floortext.Word(name), errGitConfig)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxConfig+1))
	if err == nil && len(data) > MaxConfig {
		err = errGitConfig
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", floortext.Word(name), err)
	}
	return data, nil
}

// ConfigChange is one setting that a run changed in its copy of a git configuration.
// Nothing of it has happened to the file itself.
type ConfigChange struct {
	File    Name     `json:"file"` // absolute path on the host
	Section string   `json:"section"`
	Sub     *string  `json:"sub,omitempty"` // subsection; nil for none
	Key     string   `json:"key"`
	Was     []string `json:"was,omitempty"`     // values when the run began
	Now     []string `json:"now,omitempty"`     // values at its end
	Refused string   `json:"refused,omitempty"` // why it cannot be taken over, and names and values are cut; "" for it can
}

// Name is the name of the setting as git prints it.
func (c ConfigChange) Name() string {
	if c.Sub != nil {
		return c.Section + "." + *c.Sub + "." + c.Key
	}
	return c.Section + "." + c.Key
}

// offered are the settings that can be taken over: branch tracking, remotes, submodules and
// the name of the author, with the values that they may have.
var offered = map[string]func(string) bool{
	"branch.*.remote": remoteName, "branch.*.pushremote": remoteName, "branch.*.merge": refspec, "branch.*.rebase": words("merges"),
	"remote.*.url": transportURL, "remote.*.pushurl": transportURL, "remote.*.fetch": refspec, "remote.*.tagopt": words("--tags", "--no-tags"),
	"submodule.*.url": transportURL, "submodule.*.active": boolean, "submodule.*.branch": remoteName, "submodule.*.update": words("checkout", "merge", "rebase", "none"),
	"user.name": text, "user.email": text,
}

// hostRE is the part of an address that names a machine. A user's name that could pass for
// one has no place in it: https://github.com@evil.example is at evil.example.
var hostRE = pattern(`^([A-Za-z0-9_+~-]+@)?[A-Za-z0-9_.:\[\]-]+$`)

// transportURL accepts an address of another machine. In a path, git push would run the
// hooks of the repository there.
func transportURL(v string) bool {
	_, rest, isURL := strings.Cut(v, "://")
	host, _, _ := strings.Cut(rest, "/")
	if !isURL {
		host, _, _ = strings.Cut(v, ":")
	}
	return harmlessURL(v) && (isURL || scpRE().MatchString(v)) && hostRE().MatchString(host) && !strings.HasPrefix(v, "file:")
}

// CompareConfigs lists what a run changed in its copy of the configuration file. The copy
// may hold anything.
func CompareConfigs(file string, before, after []byte) ([]ConfigChange, error) {
	was, err := parseConfig(before)
	if err != nil {
		return nil, err
	}
	now, err := parseConfig(after)
	if err != nil {
		return nil, err
	}
	var out []ConfigChange
	old, current := was.byName(), now.byName()
	for _, s := range slices.Concat(now.settings, was.settings) {
		id := s.id()
		before, known := old[id]
		after, is := current[id]
		delete(old, id)
		delete(current, id)
		if !known && !is || slices.Equal(before, after) {
			continue // of the same name as one before, or unchanged
		}
		c := s.change(file)
		c.Was, c.Now = before, after
		c.Refused = c.refusal()
		if out = append(out, c); len(out) > maxConfigChanges {
			return nil, fmt.Errorf("more than %d settings were changed", maxConfigChanges)
		}
	}
	refuseParts(out, now.byName())
	for i := range out {
		out[i].Refuse("")
	}
	return out, nil
}

// Refuse says why a change cannot be taken over, unless that is known, and leaves of it what
// tells a person which it is. Without a reason nothing happens.
func (c *ConfigChange) Refuse(why string) {
	if c.Refused = cmp.Or(c.Refused, why); c.Refused == "" {
		return
	}
	short := func(s string) string { return floortext.Cut(s, maxRefusedText) }
	c.Section, c.Key = short(c.Section), short(c.Key)
	if c.Sub != nil {
		sub := short(*c.Sub)
		c.Sub = &sub
	}
	for _, values := range []*[]string{&c.Was, &c.Now} {
		var kept []string
		for i, v := range *values {
			if i == maxRefusedValues {
				kept = append(kept, "…")
				break
			}
			kept = append(kept, short(v))
		}
		*values = kept
	}
}

// refuseParts refuses the branches that follow no remote, for git takes such a name for a
// path, and what is left of a section without its address.
func refuseParts(all []ConfigChange, now map[string][]string) {
	refused := map[string]string{}
	for _, c := range all {
		refused[c.setting().id()] = c.Refused
	}
	for _, c := range all {
		if c.Refused == "" && c.Section == "branch" && (c.Key == "remote" || c.Key == "pushremote") && slices.ContainsFunc(c.Now, func(v string) bool {
			url := setting{section: "remote", sub: v, hasSub: true, key: "url"}.id()
			return v != "." && !slices.Contains(c.Was, v) && (now[url] == nil || refused[url] != "")
		}) {
			refused[c.setting().id()] = c.onPath()
		}
	}
	for i, c := range all {
		own, address := c.setting(), c.setting()
		address.key = "url"
		if c.Section == "branch" {
			address.key = "remote"
		}
		all[i].Refused = cmp.Or(c.Refused, refused[own.id()], refused[address.id()])
	}
}

// onPath is why a path is refused as an address.
func (c ConfigChange) onPath() string {
	way := "git remote add NAME PATH"
	if c.Section == "submodule" {
		way = "git submodule add PATH"
	}
	return "a path on this machine: git would run programs by its settings; if you want it: " + way + ", outside"
}

// id tells settings with different names apart.
func (s setting) id() string { return fmt.Sprintf("%q %q %q %t", s.section, s.sub, s.key, s.hasSub) }

// byName are the values of each setting, in order.
func (c config) byName() map[string][]string {
	out := map[string][]string{}
	for _, s := range c.settings {
		value := s.value
		if s.bare {
			value = "true"
		}
		id := s.id()
		out[id] = append(out[id], value)
	}
	return out
}

func (s setting) change(file string) ConfigChange {
	c := ConfigChange{File: Name(file), Section: s.section, Key: s.key}
	if s.hasSub {
		c.Sub = &s.sub
	}
	return c
}

// setting is c without a value.
func (c ConfigChange) setting() setting {
	s := setting{section: c.Section, key: c.Key}
	if c.Sub != nil {
		s.sub, s.hasSub = *c.Sub, true
	}
	return s
}

// same reports whether two settings have the same name.
func (s setting) same(o setting) bool {
	return s.section == o.section && s.sub == o.sub && s.hasSub == o.hasSub && s.key == o.key
}

// refusal says why a change cannot be taken over; "" if it can.
func (c ConfigChange) refusal() string {
	s := c.setting()
	allowed := offered[s.pattern()]
	if allowed == nil || s.hasSub && (s.sub == "" || !text(s.sub)) {
		return "only branches, remotes, submodules and the author's name are taken over, for git may execute what other settings say"
	}
	if max(len(c.Was), len(c.Now)) > maxConfigValues {
		return fmt.Sprintf("it has more than %d values", maxConfigValues)
	}
	for _, v := range slices.Concat([]string{s.sub}, c.Was, c.Now) {
		if len(v) > maxConfigText {
			return fmt.Sprintf("a name or value is longer than %d bytes", maxConfigText)
		}
		if !utf8.ValidString(v) {
			return "a name or value is not UTF-8"
		}
	}
	for _, v := range c.Now {
		elsewhere := c.Key == "fetch" && !strings.Contains(v, ":refs/remotes/"+s.sub+"/") // where git fetch would overwrite what is not this remote's
		if slices.Contains(c.Was, v) || allowed(v) && !elsewhere {
			continue
		}
		if (c.Key == "url" || c.Key == "pushurl") && (strings.HasPrefix(v, "file:") || pathRE().MatchString(v)) {
			return c.onPath()
		}
		return "the value could lead git to execute something, or to another place than it seems"
	}
	return ""
}
