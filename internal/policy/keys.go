package policy

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kind is how the values of a key are written: in a file, on a command line, in the
// schema for editors and in the reference.
type kind struct {
	takes  string // what the reference says
	many   bool   // a list or a mapping, to which each source adds; an empty one removes what earlier sources gave
	number bool   // an element may be a number
	hint   string // where an element is a mapping and must not be

	// value reads all of a value. nil: amount or text reads it, or each element of it.
	value func(d *decoder, k key, n *yaml.Node)

	// element reads an element that may be a mapping; it returns false for one that
	// text must read. nil: all are for text.
	element func(d *decoder, key string, n *yaml.Node) bool

	// text reads one text: a word, an element of a list, or the value of a flag.
	text func(k key, text string) (e Entry, hint string, err error)

	amount func(text string) (int64, error) // of a limit
	format func(n int64) string             // the shortest text that amount reads as n
	schema func(k key) map[string]any
}

// reach says what an untrusted project file may do with a key.
type reach int

const (
	never   reach = iota // any use widens
	clears               // only an empty list, which removes entries
	adds                 // only entries, each of which removes something
	listed               // only entries that are in force already, unless all may be used, or an empty list
	subset               // only entries that are in force already, or an empty list
	lowers               // only a smaller value
	raises               // only a word at or after the one in force in key.words
	ignored              // has no effect on what is allowed
)

// key is one key of a policy file. The lists of keys are with their sections and
// nowhere else: decoding, the JSON Schema and docs/policy.md are made from them.
type key struct {
	name    string   // dotted, as in "limits.memory"
	kind    *kind    // nil for a section: a mapping of further keys
	words   []string // of kind words; for reach raises the weakest first
	project reach
	doc     string
	example string // YAML of the value
}

var keys = slices.Concat(fileKeys, workspaceKeys, filesystemKeys, networkKeys, environmentKeys, limitKeys, toolKeys, recordKeys, alertKeys, guaranteeKeys, credentialKeys, consentKeys, programKeys, approvalKeys)

// lookup finds a key by its dotted name.
func lookup(name string) (key, bool) {
	for _, k := range keys {
		if k.name == name {
			return k, true
		}
	}
	return key{}, false
}

// children are the names that may be directly below a section; "" is the top of a file.
func children(parent string) []string {
	var out []string
	for _, k := range keys {
		rest, ok := strings.CutPrefix(k.name, parent+".")
		if parent == "" {
			rest, ok = k.name, true
		}
		if ok && !strings.Contains(rest, ".") {
			out = append(out, rest)
		}
	}
	return out
}
