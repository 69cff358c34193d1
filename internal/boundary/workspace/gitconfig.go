//go:build linux

package workspace

import (
	"errors"
	"strings"
)

// setting is one line of a git configuration file.
type setting struct {
	section string // lower case
	sub     string // as written; meaningful when hasSub
	key     string // lower case
	value   string
	hasSub  bool
	bare    bool // no "=", which git takes for true
	from    int  // offset of its first byte in the file
	to      int  // offset after its line
}

// name is the setting's name as git prints it.
func (s setting) name() string {
	if s.hasSub {
		return s.section + "." + s.sub + "." + s.key
	}
	return s.section + "." + s.key
}

// config is a parsed git configuration file.
type config struct {
	settings []setting
	unusual  bool // holds syntax that git itself never writes, on which readers may differ
}

// MaxConfig is the size in bytes above which a configuration is not read.
const MaxConfig = 1 << 20

var errGitConfig = errors.New("not a git configuration file")

// parseConfig reads data as git does (config.c of git 2.39 to 2.50: a section
// header may be followed by a setting on its line, a comment ends a value, a
// backslash joins lines). What git refuses is an error here.
func parseConfig(data []byte) (config, error) {
	p := &configParser{src: strings.TrimPrefix(string(data), "\ufeff")}
	p.mark = len(data) - len(p.src)
	if len(data) > MaxConfig {
		return config{}, errGitConfig
	}
	for !p.eof() {
		switch c := p.next(); {
		case c == '\n' || space(c):
		case c == '#' || c == ';':
			p.line()
		case c == '[':
			if !p.header() {
				return config{}, errGitConfig
			}
		case alpha(c):
			if p.section == "" {
				p.out.unusual = true // git names it ".key" or refuses
			}
			if !p.setting(c) {
				return config{}, errGitConfig
			}
		default:
			return config{}, errGitConfig
		}
	}
	return p.out, nil
}

type configParser struct {
	src     string
	mark    int // length of a byte order mark before src
	pos     int
	section string
	sub     string
	hasSub  bool
	out     config
}

func (p *configParser) eof() bool { return p.pos >= len(p.src) }

// next returns the next byte, a line feed for CRLF and at the end.
func (p *configParser) next() byte {
	if p.eof() {
		p.pos++
		return '\n'
	}
	c := p.src[p.pos]
	p.pos++
	if c == '\r' && !p.eof() && p.src[p.pos] == '\n' {
		p.pos++
		return '\n'
	}
	if c < ' ' && c != '\t' && c != '\n' || c == 0x7f {
		p.out.unusual = true
	}
	return c
}

func (p *configParser) line() {
	for p.next() != '\n' {
	}
}

// header reads a section header after its bracket.
func (p *configParser) header() bool {
	var name strings.Builder
	p.hasSub = false
	for {
		if p.eof() {
			return false
		}
		switch c := p.next(); {
		case c == ']':
			p.section, p.sub = name.String(), ""
			return p.section != ""
		case space(c) || c == '\n':
			p.section = name.String()
			return c != '\n' && p.subsection() && p.section != ""
		case c == '.':
			p.out.unusual = true // the old form of a subsection, which folds its case
			name.WriteByte(c)
		case keyChar(c):
			name.WriteByte(lower(c))
		default:
			return false
		}
	}
}

func (p *configParser) subsection() bool {
	c := p.next()
	for space(c) {
		c = p.next()
	}
	if c != '"' {
		return false
	}
	var sub strings.Builder
	for {
		switch c = p.next(); c {
		case '\n':
			return false
		case '"':
			p.sub, p.hasSub = sub.String(), true
			return p.next() == ']'
		case '\\':
			if c = p.next(); c == '\n' {
				return false
			}
		}
		sub.WriteByte(c)
	}
}

// setting reads a name that begins with c, and its value.
func (p *configParser) setting(c byte) bool {
	s := setting{section: p.section, sub: p.sub, hasSub: p.hasSub, from: p.mark + p.pos - 1}
	var key strings.Builder
	for keyChar(c) {
		key.WriteByte(lower(c))
		c = p.next()
	}
	s.key = key.String()
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	switch c {
	case '\n':
		s.bare = true
	case '=':
		v, ok := p.value()
		if !ok {
			return false
		}
		s.value = v
	default:
		return false
	}
	s.to = p.mark + min(p.pos, len(p.src))
	p.out.settings = append(p.out.settings, s)
	return true
}

// value reads the rest of a line, and of the lines joined to it.
func (p *configParser) value() (string, bool) {
	var v []byte
	keep := 0 // length without trailing blanks
	quoted := false
	for {
		c := p.next()
		switch {
		case c == '\n':
			return string(v[:keep]), !quoted
		case space(c) && !quoted:
			if c != ' ' && len(v) > 0 {
				p.out.unusual = true // some versions keep a tab, some make it a space
			}
			if len(v) > 0 {
				v = append(v, c)
			}
			continue
		case !quoted && (c == '#' || c == ';'):
			p.line()
			return string(v[:keep]), true
		case c == '"':
			quoted = !quoted
			keep = len(v)
			continue
		case c == '\\':
			var ok, join bool
			if c, join, ok = p.escape(); !ok {
				return "", false
			}
			if join {
				continue
			}
		}
		v = append(v, c)
		keep = len(v)
	}
}

// escape reads what follows a backslash in a value. join means that the line continues.
func (p *configParser) escape() (c byte, join, ok bool) {
	switch c = p.next(); c {
	case '\n':
		p.out.unusual = true
		return c, true, true
	case 't':
		p.out.unusual = true
		return '\t', false, true
	case 'b':
		p.out.unusual = true
		return '\b', false, true
	case 'n':
		p.out.unusual = true
		return '\n', false, true
	case '\\', '"':
		return c, false, true
	}
	return c, false, false
}

func space(c byte) bool   { return c == ' ' || c == '\t' || c == '\r' }
func alpha(c byte) bool   { return lower(c)-'a' < 26 }
func keyChar(c byte) bool { return alpha(c) || c-'0' < 10 || c == '-' }

func lower(c byte) byte {
	if c-'A' < 26 {
		return c + 'a' - 'A'
	}
	return c
}
