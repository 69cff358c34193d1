//go:build linux

package supervise

import (
	"bytes"
	"cmp"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// maxWalk bounds how many names of one path are looked at one by one.
const maxWalk = 256

// maxWalks bounds how many links deep a path is still looked at like that.
const maxWalks = 8

// fallbackPath is where to go on for a path whose directory could not be reached.
func (r *resolver) fallbackPath(full []byte, links int, out *location) []byte {
	var to []byte
	tooLong := links >= maxWalks
	if !tooLong {
		to, tooLong = r.walk(full)
	}
	if tooLong {
		out.errno, out.unknown = 0, "resolved: too many names and links"
	}
	if to != nil {
		*out = location{asked: out.asked, slashed: out.slashed, followed: out.followed}
	}
	return to
}

// walk goes through the directories of full name by name, for a path that the kernel
// cannot resolve for us: one of the links below /proc is on it, which leads somewhere
// else for each process that asks. It returns the same path up to such a link and what
// that leads to, and nil if there is nothing to continue with. tooLong means that it
// was given up.
func (r *resolver) walk(full []byte) (to []byte, tooLong bool) {
	cut := bytes.LastIndexByte(bytes.TrimRight(full, "/"), '/')
	at, left := "/", string(full[:max(cut, 0)])
	last, links := string(full[max(cut, 0):]), 0
	for range maxWalk {
		left = strings.TrimLeft(left, "/")
		if left == "" {
			return nil, false // all of it is there: it is the last name that is not
		}
		name, rest, _ := strings.Cut(left, "/")
		left = rest
		switch name {
		case ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, name)
		if at == "/proc" && (name == "self" || name == "thread-self") {
			return r.rewritten(full, next+"/"+rest+last), false
		}
		text, link, ok := r.linkAt(next)
		switch {
		case !ok && links > 0: // a link leads to where nothing is: that is the place
			return r.rewritten(full, next+"/"+rest+last), false
		case !ok:
			return nil, false
		case !link:
			at = next
			continue
		case strings.HasPrefix(at, "/proc/"):
			if text[0] != '/' {
				return nil, false // a descriptor that has no name, and so nothing below
			}
			return r.rewritten(full, text+"/"+rest+last), false
		}
		if links++; links > maxLinks {
			return nil, false
		}
		if left = text + "/" + rest; text[0] == '/' {
			at = "/"
		}
	}
	return nil, true
}

// rewritten keeps a path that is not what it was.
func (r *resolver) rewritten(full []byte, to string) []byte {
	if to == string(full) {
		return nil
	}
	r.other = append(r.other[:0], to...)
	r.other, r.full = r.full, r.other
	return r.full
}

// linkAt reads at, whose directory is real, if it is a link; ok is false when it
// is neither that nor a directory.
func (r *resolver) linkAt(at string) (text string, link, ok bool) {
	dir, name := path.Split(at)
	fd, errno := openIn(r.root, append([]byte(dir), 0), unix.O_PATH|unix.O_DIRECTORY)
	if errno != 0 {
		return "", false, false
	}
	defer unix.Close(fd)
	zero := append([]byte(name), 0)
	var st unix.Stat_t
	if fstatat(fd, zero, &st, unix.AT_SYMLINK_NOFOLLOW) != 0 {
		return "", false, false
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFLNK {
		return "", false, kind == unix.S_IFDIR
	}
	b, errno := readlinkat(fd, zero, r.link[:])
	return string(b), true, errno == 0 && len(b) > 0
}

// stuckAt reports whether the next name of rest below d is a link.
func (r *resolver) stuckAt(d *directory, rest []byte) bool {
	name, _, _ := bytes.Cut(bytes.TrimLeft(rest, "/"), slash)
	if len(name) == 0 || string(name) == "." || string(name) == ".." {
		return false
	}
	r.name = append(append(r.name[:0], name...), 0)
	var st unix.Stat_t
	return fstatat(d.fd, r.name, &st, unix.AT_SYMLINK_NOFOLLOW) == 0 && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// upFrom takes the leading dots of a path off, that begins in a directory that
// was removed: such a one still leads to where it was, but has no name to be
// found by. rest is nil when the path leads nowhere.
func upFrom(removed, asked []byte) (base, rest []byte) {
	at := string(bytes.TrimSuffix(removed, deleted))
	rest = asked
	up := false
	for {
		rest = bytes.TrimLeft(rest, "/")
		name, after, _ := bytes.Cut(rest, slash)
		switch string(name) {
		case ".":
		case "..":
			at, up = path.Dir(at), true
		default:
			if !up {
				return nil, nil
			}
			return []byte(at), append([]byte{'.', '/'}, rest...)
		}
		rest = after
	}
}

// gates are the directories above a path that not everybody may search.
func (r *resolver) gates(real string) (out []unix.Stat_t) {
	for i := 1; i < len(real); i++ {
		var st unix.Stat_t
		if real[i] == '/' && fstatat(r.root, append([]byte(real[1:i]), 0), &st, unix.AT_SYMLINK_NOFOLLOW) == 0 && st.Mode&0o111 != 0o111 {
			out = append(out, st)
		}
	}
	return out
}

// compact takes out of a path what leads nowhere else.
func compact(at []byte) []byte {
	var short []byte
	for part := range bytes.SplitSeq(at, slash) {
		if len(part) > 0 && string(part) != "." {
			short = append(append(short, '/'), part...)
		}
	}
	return short
}

// missing is the first name on the way to s that is not there, s itself where it is
// the last.
func (s *location) missing() string {
	if s.dir == nil && s.near != nil {
		first, _, _ := strings.Cut(strings.TrimPrefix(s.place[min(len(s.near.real), len(s.place)):], "/"), "/")
		return join(s.near.real, []byte(first))
	}
	return cmp.Or(s.resolved(), string(s.asked))
}
