package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/holdfast/internal/consent/rules"
)

// File is one parsed policy: a profile, a file, or the flags of a command
// line. Its entries are in the order in which they were written.
type File struct {
	Name      string // path, or "profile local"
	SHA256    string // of its bytes, hex
	Extends   string // profile or file; "" for none
	ExtendsAt Origin
	Entries   []Entry
}

// Entry is one statement of a policy: one element of a list, one variable, or
// one value.
type Entry struct {
	Key        string      // dotted, as in "filesystem.read"
	Value      string      // as it was written; a name in environment.set
	Text       string      // value of the variable, in environment.set
	Amount     int64       // of a limit: bytes, a count, nanoseconds or thousandths of a core; 0 means none
	Ports      []int       // of network.publish and network.host-ports: on the host, inside
	Rule       *HostRule   // of network.allow, as it was written: Ports and Kind are empty where they follow from the rest
	Credential *Credential // of credentials, as it was written: its source is not looked up, and rules may add hosts
	Sink       *AlertSink  // of alerts.sinks and approvals.notify, as it was written: its paths are not resolved
	Tool       *ToolRule   // of tools.deny
	Consent    *rules.Rule // of ask and deny
	Anchor     *Anchor     // of record.anchor, the same
	Clear      bool        // an empty list: removes what earlier sources listed
	Origin     Origin
	Base       string // directory that a relative path counts from
	rank       int    // position of its source in the order of precedence
}

// Bounds of a policy file. They are far above what a human writes.
const (
	MaxFile  = 1 << 20 // bytes
	maxDepth = 8       // nested collections; the format needs seven
)

// Parse reads the bytes of a policy strictly. name is how it is called in
// messages, base the directory that its relative paths count from. A file
// that has anything in it that is not understood is an error as a whole.
func Parse(name, base string, data []byte) (File, error) {
	f := File{Name: name}
	sum := sha256.Sum256(data)
	f.SHA256 = hex.EncodeToString(sum[:])
	if err := plainText(name, data); err != nil {
		return File{}, err
	}
	root, err := document(name, data)
	if err != nil {
		return File{}, err
	}
	d := decoder{file: &f, base: base}
	d.section("", root, 1)
	if len(d.errs) == 0 && !d.versioned {
		d.fail(root, "add the line: version: 1", "the key version is missing")
	}
	if err := d.errs.orNil(); err != nil {
		return File{}, err
	}
	if len(f.Entries) > maxEntries {
		return File{}, fault(Origin{File: name}, "name directories above them", "has %d entries; at most %d are allowed", len(f.Entries), maxEntries)
	}
	return f, nil
}

// plainText refuses bytes that two readers of a file could see differently.
func plainText(name string, data []byte) error {
	at := Origin{File: name}
	switch {
	case len(data) > MaxFile:
		return fault(at, "", "is %d bytes long; a policy may have at most %d", len(data), MaxFile)
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")), bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return fault(at, "save it as UTF-8 without a byte order mark", "begins with a byte order mark")
	case !utf8.Valid(data):
		return fault(at, "save it as UTF-8", "is not UTF-8")
	}
	line := 1
	for _, r := range string(data) {
		switch {
		case r == '\n':
			line++
		case r == '\t' || r == '\r':
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || bidirectional(r):
			at.Line = line
			return fault(at, "", "contains the control character %U", r)
		}
	}
	return nil
}

// fileKeys are those of a file as a whole.
var fileKeys = []key{
	{name: "version", kind: &versions, project: ignored, example: "1",
		doc: "Version of the format. Required; the only one is 1."},
	{name: "extends", kind: &bases, project: never, example: "local",
		doc: "What this file extends: the profile `local`, `ci` or `production`, or another policy file, relative to this one. Entries of this file are added to it. Without it a file extends the profile of the run."},
}

var (
	versions = kind{takes: "the number 1", value: (*decoder).version, schema: func(key) map[string]any { return map[string]any{"const": 1} }}
	bases    = kind{takes: "a profile or a path", value: (*decoder).extends, schema: func(key) map[string]any { return textShape() }}
)

func (d *decoder) version(k key, n *yaml.Node) {
	switch {
	case !d.single(k, n):
	case n.Value != "1" || n.ShortTag() != "!!int":
		d.fail(n, "write version: 1", "version is %s; this program knows version 1", describe(n))
	default:
		d.versioned = true
	}
}

func (d *decoder) extends(k key, n *yaml.Node) {
	switch {
	case !d.single(k, n):
	case n.ShortTag() != "!!str" || n.Value == "":
		d.fail(n, "", "extends is %s; a profile or a file is expected", describe(n))
	default:
		d.file.Extends, d.file.ExtendsAt = n.Value, d.origin(n)
	}
}

// bidirectional characters make a line look like another one (CVE-2021-42574).
func bidirectional(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f
}

var yamlLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: (?:line (\d+): )?((?s).*)$`) })

// document is the only document of data.
func document(name string, data []byte) (*yaml.Node, error) {
	at := Origin{File: name}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return nil, fault(at, "the shortest policy is: version: 1", "is empty")
	}
	if err == nil {
		if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
			if err == nil {
				at.Line = more.Line
				return nil, fault(at, "", "a second document begins; a policy is one document")
			}
			return nil, syntax(at, err)
		}
		return doc.Content[0], nil
	}
	return nil, syntax(at, err)
}

func syntax(at Origin, err error) error {
	m := yamlLine().FindStringSubmatch(err.Error())
	if m == nil {
		return &Error{Origin: at, Msg: "not YAML: " + printable(err.Error()), cause: err}
	}
	at.Line, _ = strconv.Atoi(m[1])
	return &Error{Origin: at, Msg: "not YAML: " + printable(m[2]), cause: err}
}

type decoder struct {
	file      *File
	base      string
	versioned bool
	errs      Errors
}

func (d *decoder) origin(n *yaml.Node) Origin { return Origin{File: d.file.Name, Line: n.Line} }

func (d *decoder) fail(n *yaml.Node, hint, format string, args ...any) {
	d.errs = append(d.errs, fault(d.origin(n), hint, format, args...))
}

func (d *decoder) add(n *yaml.Node, e Entry) {
	e.Origin, e.Base = d.origin(n), d.base
	d.file.Entries = append(d.file.Entries, e)
}

// plain reports whether n is written without the parts of YAML that make one
// text mean several things: anchors, aliases, merges and tags.
func (d *decoder) plain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		d.fail(n, "write the value out", "the alias *%s; a policy has no aliases", printable(n.Value))
	case n.Anchor != "":
		d.fail(n, "", "the anchor &%s; a policy has no anchors", printable(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		d.fail(n, "", "the tag %s; a policy has no tags", printable(n.Tag))
	case n.Tag == "!!merge":
		d.fail(n, "write the keys out", "a merge (<<); a policy has no merges")
	default:
		return true
	}
	return false
}

// section decodes the mapping n, whose keys are below the key parent.
func (d *decoder) section(parent string, n *yaml.Node, depth int) {
	if !d.plain(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		what := "a policy"
		if parent != "" {
			what = parent
		}
		d.fail(n, "", "%s is %s; a mapping of keys is expected", what, describe(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if !d.plain(name) {
			continue
		}
		if name.Kind != yaml.ScalarNode {
			d.fail(name, "", "a key is %s; a name is expected", describe(name))
			continue
		}
		if line, twice := seen[name.Value]; twice {
			d.fail(name, "", "the key %q is repeated; it was first given on line %d", printable(name.Value), line)
			continue
		}
		seen[name.Value] = name.Line
		d.key(parent, name, value, depth)
	}
}

func (d *decoder) key(parent string, name, value *yaml.Node, depth int) {
	full := name.Value
	if parent != "" {
		full = parent + "." + name.Value
	}
	k, ok := lookup(full)
	if !ok || strings.Contains(name.Value, ".") {
		d.unknown(parent, name)
		return
	}
	if !d.plain(value) || !d.shallow(value, depth+1) {
		return
	}
	switch {
	case k.kind == nil:
		d.section(full, value, depth+1)
	case k.kind.value != nil:
		k.kind.value(d, k, value)
	case k.kind.many:
		d.list(k, value)
	default:
		d.scalar(k, value)
	}
}

// shallow refuses nesting that no key has, before anything walks down it.
func (d *decoder) shallow(n *yaml.Node, depth int) bool {
	if depth > maxDepth {
		d.fail(n, "", "nested more than %d deep", maxDepth)
		return false
	}
	for _, c := range n.Content {
		if !d.shallow(c, depth+1) {
			return false
		}
	}
	return true
}

func (d *decoder) unknown(parent string, name *yaml.Node) {
	where := ""
	if parent != "" {
		where = " in " + parent
	}
	d.unknownKey(where, name, children(parent))
}

// unknownIn is unknown for a mapping in a list.
func (d *decoder) unknownIn(what string, name *yaml.Node, known []string) {
	d.unknownKey(" in "+what, name, known)
}

func (d *decoder) unknownKey(where string, name *yaml.Node, candidates []string) {
	hint := ""
	msg := fmt.Sprintf("unknown key %q%s", printable(name.Value), where)
	if near := nearest(name.Value, candidates); near != "" {
		msg += fmt.Sprintf(", did you mean %q?", near)
	} else {
		hint = "known here: " + strings.Join(candidates, ", ")
	}
	d.fail(name, hint, "%s", msg)
}

// describe names what n is, for a message that says what it should be.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!null":
			return "empty"
		case "!!int", "!!float":
			return "the number " + printable(n.Value)
		case "!!bool":
			return "the boolean " + printable(n.Value)
		case "!!timestamp":
			return "the date " + printable(n.Value)
		}
		return fmt.Sprintf("the text %q", printable(n.Value))
	}
	return "something else"
}
