//go:build linux

package review

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	floortext "holdfast.dev/holdfast/internal/floor/text"
)

// gitClass is what a file of a repository is for git.
type gitClass uint8

const (
	gitOther  gitClass = iota // settings, hooks and unknown files: each decided about separately
	gitObject                 // a loose object, named after its content
	gitPack                   // a pack, or what goes with it
	gitPackIndex
	gitLog // of what refs were
	gitRef
	gitState // of what git was about to do
	gitHead
	gitIndex
	gitNever // caches that git makes again, locks, what a dead git left: not part of any change
)

// gitFiles are files at the top of a repository that belong to its history.
var gitFiles = map[string]gitClass{
	"HEAD": gitHead, "index": gitIndex, "packed-refs": gitRef,
	"ORIG_HEAD": gitState, "FETCH_HEAD": gitState, "MERGE_HEAD": gitState, "CHERRY_PICK_HEAD": gitState, "REVERT_HEAD": gitState,
	"AUTO_MERGE": gitState, "MERGE_MSG": gitState, "MERGE_MODE": gitState, "SQUASH_MSG": gitState, "COMMIT_EDITMSG": gitState,
	"gc.log": gitNever, "gc.pid": gitNever,
}

// classify says what rel, a path in a repository, is.
func classify(rel string) gitClass {
	if c, ok := gitFiles[rel]; ok {
		return c
	}
	top, rest, _ := strings.Cut(rel, "/")
	switch {
	case strings.HasSuffix(rel, ".lock"):
		return gitNever
	case strings.HasPrefix(rel, "sharedindex."):
		return gitIndex
	case top == "refs":
		return gitRef
	case top == "logs":
		return gitLog
	case top != "objects":
		return gitOther
	}
	dir, name, _ := strings.Cut(rest, "/")
	switch {
	case objectID(dir+name) != "" && len(dir) == 2:
		return gitObject
	case dir == "pack" && strings.HasPrefix(name, "pack-"):
		switch name[strings.LastIndexByte(name, '.')+1:] {
		case "idx":
			return gitPackIndex
		case "pack", "rev", "promisor", "keep":
			return gitPack
		}
		return gitNever
	case dir == "pack", strings.HasPrefix(name, "tmp_obj_"), dir == "info" && (name == "packs" || strings.HasPrefix(name, "commit-graph")):
		return gitNever
	}
	return gitOther
}

// objectID returns s if it names an object, by SHA-1 or SHA-256.
func objectID(s string) string {
	if len(s) != 40 && len(s) != 64 {
		return ""
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return s
}

// repositoryOf splits a path below a directory .git into that and the rest.
func repositoryOf(path string) (repo, rel string, ok bool) {
	for at := 0; ; {
		i := strings.Index(path[at:], ".git/")
		if i < 0 {
			return "", "", false
		}
		i += at
		if i == 0 || path[i-1] == '/' {
			return path[:i+4], path[i+5:], true
		}
		at = i + 5
	}
}

// histories removes from the list what git keeps in a repository other than settings
// and hooks, and adds one change for each repository. Objects, refs and the index
// belong together: some of them alone are a broken repository.
func (c *collector) histories(list []*Change) []*Change {
	repos := map[string]*Change{}
	kept := list[:0]
	for _, ch := range list {
		repo, rel, ok := repositoryOf(string(ch.Path))
		c.gitState(ch, repo)
		c.gitView(ch, rel)
		if c.checkIndex(ch, repo) || !ok || !ch.belongs(rel) {
			ch.Flags = append(ch.Flags, ch.indexed...)
			kept = append(kept, ch)
			continue
		}
		h := repos[repo]
		if h == nil {
			h = &Change{Path: workspace.Name(repo), Kind: History, Type: Dir, OldType: Dir, History: &HistoryInfo{}}
			repos[repo] = h
		}
		if classify(rel) == gitNever || max(ch.Type, ch.OldType) != File || ch.Kind == ModeChanged || ch.Kind == Deleted && keeps(rel) {
			h.History.noteLeft(ch, rel)
			continue
		}
		h.parts = append(h.parts, ch)
		h.Size += ch.Size
	}
	for _, h := range repos {
		if len(h.parts) == 0 {
			continue
		}
		slices.SortStableFunc(h.parts, func(a, b *Change) int {
			return int(classOf(a)) - int(classOf(b))
		})
		c.describe(h)
		kept = append(kept, h)
	}
	byPath(kept)
	return kept
}

func classOf(c *Change) gitClass {
	_, rel, _ := repositoryOf(string(c.Path))
	return classify(rel)
}

// keeps reports whether git alone decides when rel goes.
func keeps(rel string) bool {
	switch classify(rel) {
	case gitObject, gitPack, gitPackIndex:
		return true
	}
	return false
}

// belongs reports whether a change of rel is part of the history.
func (c *Change) belongs(rel string) bool {
	class := classify(rel)
	switch {
	case class == gitNever:
		return true
	case max(c.Type, c.OldType) == Dir && c.Kind != TypeChanged:
		return class != gitOther || rel == "objects" || strings.HasPrefix(rel, "objects/") && strings.Count(rel, "/") == 1
	case class == gitOther || c.Kind == TypeChanged || max(c.Type, c.OldType) != File:
		return false
	}
	if c.Kind == Modified && (class == gitObject || class == gitPack || class == gitPackIndex) {
		c.raise("git", "an object was rewritten, which git never does")
		c.Cannot = "git objects never change"
		return false
	}
	return true
}

// maxLeft bounds how many files of a repository are named that are not applied.
const maxLeft = 20

func (h *HistoryInfo) noteLeft(c *Change, rel string) {
	if len(h.Left) < maxLeft && c.Type != Dir && c.OldType != Dir {
		h.Left = append(h.Left, fmt.Sprintf("%s %s", c.Kind, rel))
	}
}

// describe reads what a run did in a repository.
func (c *collector) describe(h *Change) {
	info := h.History
	fresh := map[string]bool{}
	for _, p := range h.parts {
		_, rel, _ := repositoryOf(string(p.Path))
		switch classify(rel) {
		case gitObject:
			info.Objects++
			fresh[strings.ReplaceAll(strings.TrimPrefix(rel, "objects/"), "/", "")] = true
		case gitPack:
			if strings.HasSuffix(rel, ".pack") {
				info.Packs++
			}
		}
	}
	r := repoReader{c: c, repo: string(h.Path), info: info, fresh: fresh}
	r.refs(h.parts)
	r.commits()
	what := "the index alone"
	switch n := len(info.Commits); {
	case n == 1:
		what = "1 commit"
	case n > 1 && info.More:
		what = fmt.Sprintf("more than %d commits", n)
	case n > 1:
		what = fmt.Sprintf("%d commits", n)
	case info.Objects+info.Packs > 0:
		what = "new objects and no commit"
	case len(info.Refs) > 0:
		what = "other branches or tags"
	case slices.ContainsFunc(h.parts, func(p *Change) bool { return classOf(p) != gitIndex }):
		what = "the state of git's work"
	}
	if info.Branch != "" {
		what += fmt.Sprintf(" on branch %q", info.Branch)
	}
	h.raise("git", "git on the host takes it for the repository's history: %s", what)
	h.showParts()
	if info.Packs > 0 {
		h.note("it holds packs, which are not looked into: run git fsck --full after it is applied")
	}
	h.note("it is applied as a whole: objects first, then branches, HEAD and the index. Objects are checked against their names; none is removed")
}

// repoReader reads the refs and commits of what a run left in a repository.
type repoReader struct {
	c     *collector
	repo  string
	info  *HistoryInfo
	fresh map[string]bool // new loose objects
	olds  map[string]bool // where refs were
	tips  []string        // where refs are
}

const maxRef = 64 << 10

// file reads a small file of a repository, as it is and as it was.
func (r *repoReader) file(rel string, now bool) string {
	path := r.repo + "/" + rel
	if now {
		side, err := readSide(r.c.t.upper, path, true)
		if err == nil && side.Type == File {
			return string(side.data)
		}
		if err != nil || r.c.mode == Copy {
			return ""
		}
	}
	side, err := r.c.t.oldSide(path)
	if err != nil {
		return ""
	}
	return string(side.data)
}

// refs compares the refs.
func (r *repoReader) refs(parts []*Change) {
	r.olds = map[string]bool{}
	for _, p := range parts {
		_, rel, _ := repositoryOf(string(p.Path))
		switch {
		case strings.HasPrefix(rel, "refs/"):
			ref := RefChange{Name: rel}
			if p.OldType == File {
				ref.Old = tip(r.file(rel, false))
			}
			if p.Type == File {
				ref.New = tip(r.file(rel, true))
			}
			r.noteRefMove(ref)
		case rel == "packed-refs":
			was, is := parsePackedRefs(r.file(rel, false)), parsePackedRefs(r.file(rel, true))
			for name, id := range is {
				if was[name] != id {
					r.noteRefMove(RefChange{name, was[name], id})
				}
			}
		}
	}
	head := strings.TrimSpace(r.file("HEAD", true))
	if ref, ok := strings.CutPrefix(head, "ref: refs/heads/"); ok {
		r.info.Branch = ref
	} else if id := objectID(head); id != "" {
		r.tips = append(r.tips, id)
	}
	slices.SortFunc(r.info.Refs, func(a, b RefChange) int { return strings.Compare(a.Name, b.Name) })
	if len(r.info.Refs) > MaxRefs {
		r.info.Refs, r.info.More = r.info.Refs[:MaxRefs], true
	}
}

func (r *repoReader) noteRefMove(ref RefChange) {
	if ref.Old == ref.New {
		return
	}
	r.info.Refs = append(r.info.Refs, ref)
	r.olds[ref.Old] = true
	if ref.New != "" {
		r.tips = append(r.tips, ref.New)
	}
}

// tip is the object that a ref names; "" for an invalid one.
func tip(s string) string {
	if len(s) > maxRef {
		return ""
	}
	return objectID(strings.TrimSpace(s))
}

// parsePackedRefs reads packed-refs (gitrepository-layout(5)).
func parsePackedRefs(s string) map[string]string {
	refs := map[string]string{}
	for line := range strings.Lines(s) {
		id, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && objectID(id) != "" {
			refs[name] = id
		}
	}
	return refs
}

// commits walks from the new tips over commits that are new.
func (r *repoReader) commits() {
	seen := map[string]bool{}
	for queue := r.tips; len(queue) > 0; {
		id := queue[0]
		queue = queue[1:]
		if seen[id] || r.olds[id] || id == "" {
			continue
		}
		seen[id] = true
		if !r.fresh[id] {
			r.info.More = r.info.More || r.info.Packs > 0
			continue
		}
		if len(r.info.Commits) == MaxCommits {
			r.info.More = true
			return
		}
		kind, body, err := readObject(r.c.t.upper, r.repo, id)
		switch {
		case err != nil:
			r.info.More = true
		case kind == "commit":
			c, parents := parseCommit(id, body)
			r.info.Commits = append(r.info.Commits, c)
			queue = append(queue, parents...)
		case kind == "tag":
			if line, _, _ := bytes.Cut(body, []byte("\n")); bytes.HasPrefix(line, []byte("object ")) {
				queue = append(queue, objectID(string(line[7:])))
			}
		}
	}
}

func parseCommit(id string, body []byte) (c Commit, parents []string) {
	c.ID = id
	head, message, _ := bytes.Cut(body, []byte("\n\n"))
	for line := range bytes.Lines(head) {
		key, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		switch string(key) {
		case "parent":
			if p := objectID(string(value)); p != "" && len(parents) < 64 {
				parents = append(parents, p)
			}
		case "author":
			name, _, _ := bytes.Cut(value, []byte("> "))
			c.Author = short(string(name) + ">")
		}
	}
	subject, _, _ := bytes.Cut(message, []byte("\n"))
	c.Subject = short(string(subject))
	return c, parents
}

// short cuts a text of the run to what is worth showing.
func short(s string) string {
	return strings.ToValidUTF8(floortext.Head(s, 200), "\ufffd")
}
