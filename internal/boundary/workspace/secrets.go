//go:build linux

package workspace

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxIndex is how much of a git index is read to find out what is tracked.
const maxIndex = 64 << 20

// socketRule is of sockets among what is hidden.
const socketRule = "socket"

// secret files a rule of the hide or show tier. The user's come after the list's,
// and the last counts.
func (r *Rules) secret(e *Rule) {
	if e.Where == AtRoot || strings.Contains(e.Pattern, "/") {
		r.hidden = append(r.hidden, e)
		return
	}
	if n := r.hide.edge(string(fold([]byte(e.Pattern), nil))); n.rule == nil || e.Ref == "" {
		n.rule = e
	}
}

// secretRule finds the rule that hides e; nil for none. What the user named takes
// precedence over the list, and an exception over the rule that it restricts.
func (r *Rules) secretRule(w *walker, d *dir, e entry) *Rule {
	best := r.secretRuleOf(e.folded, func() string { return w.pathTo(e) })
	if best == nil || best.Tier == Show || best.Ref != "" && d.dep != nil {
		return nil // keys in installed packages are not secret
	}
	return best
}

// secretRuleOf finds the rule of the hide or show tier that applies to a folded name;
// at returns its path.
func (r *Rules) secretRuleOf(name []byte, at func() string) *Rule {
	var best *Rule
	better := func(one *Rule) {
		if best == nil || one.Ref == "" && best.Ref != "" || one.Tier == Show && (one.Ref == "") == (best.Ref == "") {
			best = one
		}
	}
	var found [4]*node
	for _, n := range r.hide.step(name, found[:0]) {
		if n.rule != nil {
			better(n.rule)
		}
	}
	if len(r.hidden) > 0 {
		where := at()
		for _, one := range r.hidden {
			if ok, err := path.Match(one.Pattern, where); ok && err == nil {
				better(one)
			}
		}
	}
	return best
}

// beforeRules notes secrets, and sockets that a program of the host may listen on:
// a socket's name works through every mount and every network namespace.
func (s *scan) beforeRules(w *walker, d *dir, e entry) (bool, error) {
	if err := s.countEntry(w); err != nil || s.external || d.gits() {
		return false, err
	}
	rule := &Rule{Pattern: socketRule, Reason: "a program of the host may listen on it"}
	if e.typ != unix.DT_SOCK {
		if rule = s.rules.secretRule(w, d, e); rule == nil || e.typ == unix.DT_DIR && rule.Ref != "" {
			return false, nil
		}
	}
	if rule.Key && !holdsKey(d.fd, string(e.name())) {
		return false, nil
	}
	var st unix.Statx_t
	if err := statAt(d.fd, e.nameZ, &st); err != nil {
		return false, ignoreGone(err)
	}
	r := newRow(w.pathTo(e), rule.Pattern, rule.Reason, &st)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secrets = append(s.secrets, r); rule.Ref != "" {
		s.listed = append(s.listed, string(r.Path))
	}
	return e.typ == unix.DT_DIR, nil // nothing in a hidden directory can be reached
}

// holdsKey reports whether a file looks like it holds a private key.
func holdsKey(dir int, name string) bool {
	f := openFile(dir, name)
	if f == nil {
		return false
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	n, _ := f.Read(buf)
	return bytes.Contains(buf[:n], []byte("PRIVATE KEY"))
}

// hideSecrets makes rows of the secrets that were found, except those of the list that
// a repository tracks: they are in its objects as well, and git would take an
// unreadable file for a change.
func (s *scan) hideSecrets() {
	indexes := map[string]map[string]bool{}
	for _, r := range s.secrets {
		if !slices.Contains(s.listed, string(r.Path)) || !s.tracked(string(r.Path), indexes) {
			s.found.Hidden = append(s.found.Hidden, r)
		}
	}
	slices.SortFunc(s.found.Hidden, func(a, b row) int { return strings.Compare(string(a.Path), string(b.Path)) })
}

// secrets are the paths that are hidden because the list names them and no
// repository tracked them.
func (t *tree) secrets(r *Rules) map[string]bool {
	out := map[string]bool{}
	for _, h := range t.Hidden {
		mine := func(e Rule) bool { return e.Tier == Hide && e.Pattern == h.Rule }
		if h.Rule != socketRule && !slices.ContainsFunc(r.own, mine) {
			out[string(h.Path)] = true
		}
	}
	return out
}

// tracked reports whether the index of the repository that a file lies in has
// its name.
func (s *scan) tracked(file string, indexes map[string]map[string]bool) bool {
	for top := parent(file); ; top = parent(top) {
		if slices.Contains(s.tops, top) {
			index, ok := indexes[top]
			if !ok {
				index = s.readIndex(top)
				indexes[top] = index
			}
			return index[strings.TrimPrefix(strings.TrimPrefix(file, top), "/")]
		}
		if top == "" {
			return false
		}
	}
}

// readIndex returns which of the secrets below top its repository tracks.
func (s *scan) readIndex(top string) map[string]bool {
	dir, err := OpenBeneath(s.root, strings.TrimPrefix(top+"/.git", "/"), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	defer unix.Close(dir)
	if !s.budget.affordsFile(dir, "index", 1) {
		return nil // it is hidden like a secret that is not tracked
	}
	data, _ := readFile(dir, "index", maxIndex)
	config, _ := readFile(dir, "config", MaxConfig)
	listed := map[string]bool{}
	for _, f := range s.listed {
		listed[strings.TrimPrefix(strings.TrimPrefix(f, top), "/")] = true
	}
	found := map[string]bool{}
	err = eachIndexed(data, hashSize(config), func(name, _ []byte) {
		if listed[string(name)] {
			found[string(name)] = true
		}
	})
	if err != nil {
		return nil
	}
	return found
}
