package policy

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// fewPaths is how many paths below one prefix are still listed one by one.
const fewPaths = 8

// generalise makes patterns of paths, in order: what is different every time
// becomes *, and what has too many paths below it becomes prefix/**. Every path
// is covered by one of the patterns.
func generalise(paths []string) []string {
	root := &branch{}
	for _, path := range paths {
		root.add(segments(path))
	}
	root.fold()
	out := root.patterns("")
	slices.Sort(out)
	return out
}

// tree matches all that is below a prefix.
const tree = "**"

// segments are the segments of a pattern that covers path; the last may be tree.
func segments(path string) []string {
	const longest = 1024 // of a pattern, and less than requestPath takes
	var out []string
	size := 0
	all := strings.Split(path, "/")[1:]
	for i, s := range all {
		last := i == len(all)-1
		size += len(s) + 1
		if s == "." || s == ".." || s == "" && !last || size > longest {
			return append(out, tree)
		}
		out = append(out, segment(s))
	}
	return out
}

// varying are segments that are different every time: numbers, hashes, UUIDs,
// and what is as long as a token and has digits in it.
var varying = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]+|[0-9a-fA-F]{7,}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|v?[0-9]+(\.[0-9]+)+([-+.][0-9A-Za-z.+-]*)?)$`)
})

// numbered is a version in the middle of a name, as in tool-1.2.3.tar.gz.
var numbered = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]+(\.[0-9]+)+`) })

func segment(s string) string {
	const digits = "0123456789"
	odd := strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`%;?#\*`, r) })
	varies := varying().MatchString(s) && (strings.ContainsAny(s, digits))
	token := len(s) >= 24 && strings.Trim(s, alphanumeric+"-_") == "" && strings.ContainsAny(s, digits)
	if odd || varies || token {
		return "*"
	}
	return numbered().ReplaceAllString(s, "*")
}

// branch is what was seen below a prefix.
type branch struct {
	end   bool // a path ends here
	names []string
	next  []*branch
	all   bool // everything below
}

func (b *branch) add(segments []string) {
	if len(segments) == 0 {
		b.end = true
		return
	}
	if segments[0] == tree {
		b.all = true
		return
	}
	at := slices.Index(b.names, segments[0])
	if at < 0 {
		at = len(b.names)
		b.names, b.next = append(b.names, segments[0]), append(b.next, &branch{})
	}
	b.next[at].add(segments[1:])
}

// fold replaces many paths by their prefix, the longest prefixes first, and
// returns how many patterns are left at b and below it.
func (b *branch) fold() int {
	below := 0
	for _, n := range b.next {
		below += n.fold()
	}
	if b.all || below > fewPaths {
		b.all, b.names, b.next = true, nil, nil
		below = 1
	}
	if b.end {
		below++
	}
	return below
}

func (b *branch) patterns(prefix string) (out []string) {
	if b.end {
		out = append(out, prefix)
	}
	if b.all {
		out = append(out, prefix+"/"+tree)
	}
	for i, name := range b.names {
		out = append(out, b.next[i].patterns(prefix+"/"+name)...)
	}
	return out
}
