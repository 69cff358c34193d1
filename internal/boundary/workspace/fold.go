//go:build linux

package workspace

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// fold brings a file name to the form in which patterns are compared: lower
// case, without what some file systems ignore. HFS+ drops certain code points,
// NTFS and FAT drop trailing dots and spaces, NTFS takes "::$INDEX_ALLOCATION"
// and other stream suffixes for the file itself and "git~1" for ".git"
// (CVE-2014-9390, CVE-2019-1352, CVE-2019-1353). A tree that looks harmless
// here may be opened there, and a directory may fold case here too (ext4
// casefold). The result is name itself or lies in buf.
func fold(name, buf []byte) []byte {
	plain := true
	for _, c := range name {
		if c-'A' < 26 || c >= utf8.RuneSelf || c == ':' || c == '~' {
			plain = false
			break
		}
	}
	if plain {
		return trimTail(name)
	}
	if i := bytes.Index(name, []byte(":$")); i > 0 {
		name = bytes.TrimRight(name[:i], ":")
	}
	buf = buf[:0]
	for len(name) > 0 {
		r, n := utf8.DecodeRune(name)
		switch {
		case r == utf8.RuneError && n == 1:
			buf = append(buf, name[0])
		case ignorable(r):
		case r == 'ſ':
			buf = append(buf, 's')
		default:
			buf = utf8.AppendRune(buf, unicode.ToLower(r))
		}
		name = name[n:]
	}
	buf = trimTail(buf)
	if string(buf) == "git~1" {
		buf = append(buf[:0], ".git"...)
	}
	return buf
}

// ignorable reports whether HFS+ ignores r in names: the list of Apple's
// TN1150, which git refuses too.
func ignorable(r rune) bool {
	return r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e ||
		r >= 0x206a && r <= 0x206f || r == 0xfeff
}

func trimTail(b []byte) []byte {
	n := len(b)
	for n > 1 && (b[n-1] == '.' || b[n-1] == ' ') {
		n--
	}
	return b[:n]
}
