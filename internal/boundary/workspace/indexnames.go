//go:build linux

package workspace

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// IndexName is a name that is new in an index of git.
type IndexName struct {
	Path string // from the workspace; of a listed directory only that
	Rule *Rule  // of the deny or the hide tier
}

// maxIndexNames bounds how many names of each tier IndexNames returns.
const maxIndexNames = 100

// IndexNames returns names that are in now, the index of a repository with a
// configuration, and in none of was, its earlier indexes: names of the deny tier with
// which git would write something different from what is in the tree, and names of
// secrets that are in the tree. top is the directory of the tree that the index is for;
// shared reads the second file of a split index.
func (r *Rules) IndexNames(tree int, top string, now []byte, was [][]byte, shared func(name string) []byte, config []byte) []IndexName {
	if r.tree == nil {
		return nil
	}
	size := hashSize(config)
	had := map[string]bool{}
	for _, data := range was {
		_ = eachStaged(data, size, r, top, shared, func(e staged) { had[e.sum()] = true }) // of one that git refuses nothing is known
		_ = eachIndexed(data, size, func(name, _ []byte) {
			if r.hidingRule(top, name) != nil {
				had[string(name)] = true
			}
		})
	}
	root, err := OpenBeneath(tree, top, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		root = -1
	} else {
		defer unix.Close(root)
	}
	var out []IndexName
	seen := map[string]bool{}
	add := func(name string, rule *Rule) {
		if p := path.Join(top, name); !seen[p] && len(seen) < maxIndexNames {
			seen[p] = true
			out = append(out, IndexName{p, rule})
		}
	}
	_ = eachIndexed(now, size, func(name, _ []byte) {
		rule := r.hidingRule(top, name)
		if rule != nil && root >= 0 && !had[string(name)] && secretAt(root, string(name), rule) {
			add(string(name), rule)
		}
	})
	clear(seen)
	_ = eachStaged(now, size, r, top, shared, func(e staged) {
		if !had[e.sum()] && (root < 0 || !e.matchesTree(root, size, func(int64) bool { return true })) {
			add(e.at, e.rule)
		}
	})
	return out
}

// hidingRule finds the rule of the list that hides a file which no repository tracks,
// by its name in the worktree top; nil for none. What the user named is hidden
// in any case.
func (r *Rules) hidingRule(top string, name []byte) *Rule {
	base := name[strings.LastIndexByte(string(name), '/')+1:]
	best := r.secretRuleOf(fold(base, nil), func() string { return path.Join(top, string(name)) })
	if best == nil || best.Tier == Show || best.Ref == "" {
		return nil
	}
	return best
}

// secretAt reports whether a file is there that rule would hide.
func secretAt(root int, name string, rule *Rule) bool {
	dir, base := path.Split(name)
	fd, err := OpenBeneath(root, strings.TrimSuffix(dir, "/"), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&typeMask == typeDir {
		return false
	}
	return !rule.Key || holdsKey(fd, base)
}
