// Package paths compares slash-separated paths by their text alone. No function
// asks the file system: a link, a mount or a rename makes the answer wrong for
// the file. Code that holds the boundary opens a path beneath a directory and
// asks the kernel; it does not compare names.
package paths

import (
	"path"
	"strings"
)

// Below reports whether p names something strictly below the directory dir.
//
// The directory is always the first argument. Both paths are cleaned first
// ([path.Clean]), so that "/a/../b" is not below "/a". "/" is below nothing, and
// every other absolute path is below "/". "." is the root of the relative paths;
// a relative path is never below an absolute directory, nor the reverse. The
// empty path names nothing: it is below nothing and nothing is below it.
func Below(dir, p string) bool {
	_, ok := Rel(dir, p)
	return ok
}

// Within reports whether p names dir itself or something below it, under the
// rules of [Below].
func Within(dir, p string) bool {
	return dir != "" && p != "" && path.Clean(dir) == path.Clean(p) || Below(dir, p)
}

// Rel returns the path from dir to p, without a slash at either end, where p is
// [Below] dir; "", false otherwise.
func Rel(dir, p string) (rel string, ok bool) {
	if dir == "" || p == "" {
		return "", false
	}
	dir, p = path.Clean(dir), path.Clean(p)
	switch dir {
	case "/":
		return p[1:], p[0] == '/' && p != "/"
	case ".":
		if p == "." || p == ".." || p[0] == '/' || strings.HasPrefix(p, "../") {
			return "", false
		}
		return p, true
	}
	if len(p) <= len(dir)+1 || p[len(dir)] != '/' || p[:len(dir)] != dir {
		return "", false
	}
	return p[len(dir)+1:], true
}
