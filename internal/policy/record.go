package policy

import (
	"fmt"
	"slices"
	"strings"
)

// recordKeys are those of the section record.
var recordKeys = []key{
	{name: "record",
		doc: "The record of the run, outside every view. What Holdfast itself decides is in it at every level."},
	{name: "record.level", kind: &words, words: []string{string(RecordStandard), string(RecordFull)}, project: raises, example: "full",
		doc: "`standard`: what is executed, changed, connected to or refused. `full`: every open for reading too. The flag is `--record`. With `record` under `without` no system calls are recorded, whatever this key says."},
	{name: "record.anchor", kind: &anchors, project: never, example: "[\"file:~/anchors/holdfast\", syslog, https://anchor.example.org/holdfast]",
		doc: anchorDoc},
}

var anchors = kind{
	takes: "a list of places",
	many:  true,
	hint:  "write no space behind the colon: file:PATH",
	text: func(k key, text string) (Entry, string, error) {
		a, hint, err := anchorText(text)
		return Entry{Key: k.name, Value: text, Anchor: &a}, hint, err
	},
	schema: func(key) map[string]any {
		return list(map[string]any{"type": "string", "pattern": "^(file:[^?]+|syslog:?|https?://.+)$"})
	},
}

// Record is what is written down of a run.
type Record struct {
	Level  RecordLevel
	Anchor []Anchor // where the head of the log is published; empty for nowhere
	Origin Origin   // of Level
}

// RecordLevel is how much of a run is written down.
type RecordLevel string

// The levels. RecordOff is the effect of accepting the loss of the guarantee "record":
// what the supervisor decides itself is still recorded.
const (
	RecordOff      RecordLevel = "off"
	RecordStandard RecordLevel = "standard" // what is executed, changed, connected or refused
	RecordFull     RecordLevel = "full"     // every open for reading too
)

const anchorDoc = "Where the signed head of the log is published besides Holdfast's own state, so that a truncated or rewritten log is detected: `file:PATH`, a file outside of all that is in view; `syslog`, the syslog daemon of the host; or a URL with `https` (`http` to loopback only) that the head is sent to by POST."

// Anchor is one place where the head of the log is published, so that a log that was
// truncated or rewritten can be distinguished from the original.
type Anchor struct {
	Kind    string // file, syslog or http
	Address string // file: absolute path, every component resolved; http: URL, with https or to loopback; syslog: ""
	Origin  Origin
}

// anchorText reads one element of record.anchor. A relative path of a file is
// resolved later.
func anchorText(text string) (a Anchor, hint string, err error) {
	if path, ok := strings.CutPrefix(text, "file:"); ok {
		if strings.HasPrefix(path, "//") {
			return a, "write file:/PATH", fmt.Errorf("the anchor %q is a URL; what follows file: is a path", printable(text))
		}
		path, err = fileText(path)
		return Anchor{Kind: "file", Address: path}, "", err
	}
	if text == "syslog" || text == "syslog:" { // the second is how the others are written
		return Anchor{Kind: "syslog"}, "", nil
	}
	if !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "http://") {
		const known = "known: file:PATH, syslog and https://…"
		if near := nearest(text, []string{"syslog"}); near != "" {
			return a, known, fmt.Errorf("unknown anchor %q, did you mean %q?", printable(text), near)
		}
		return a, known, fmt.Errorf("%q is not an anchor", printable(text))
	}
	if err := endpoint(text, false); err != nil {
		return a, "", fmt.Errorf("the anchor: %w", err)
	}
	return Anchor{Kind: "http", Address: text}, "", nil
}

// String is an anchor as one would write it, without what follows the host of a URL.
func (a Anchor) String() string {
	switch a.Kind {
	case "http":
		return shownURL(a.Address)
	case "file":
		return "file:" + a.Address
	}
	return a.Kind
}

// record sets how much is recorded. It comes after what is accepted.
func (p *Plan) record(e Effective) {
	p.Honeytokens = e.word("honeytokens") != "off"
	p.Record.Level = RecordFull // the default; every profile sets one
	if all := e.entriesFor("record.level"); len(all) > 0 {
		one := all[len(all)-1]
		p.Record.Level, p.Record.Origin = RecordLevel(one.Value), one.Origin
	}
	for _, one := range e.entriesFor("without") {
		if Guarantee(one.Value) == Recording {
			p.Notes = append(p.Notes, one.Origin.String()+": no system call is recorded (record.level "+string(p.Record.Level)+" of "+p.Record.Origin.String()+
				" is off): what is executed, read, changed or refused by the kernel will not be known, and rules about it raise nothing; what Holdfast decides itself is recorded nevertheless")
			p.Record.Level, p.Record.Origin = RecordOff, one.Origin
			return
		}
	}
}

// anchor adds one place for the head of the log, once however many sources
// name it.
func (p *Plan) anchor(x explainer, one Entry) *Error {
	a := *one.Anchor
	a.Origin = one.Origin
	if a.Kind == "file" {
		var fault *Error
		if a.Address, fault = x.outsideView(one, "the anchor", a.Address); fault != nil {
			return fault
		}
		if fault := x.appendTarget(one, "the anchor", a.Address); fault != nil {
			return fault
		}
	}
	if !slices.ContainsFunc(p.Record.Anchor, func(old Anchor) bool { return old.Kind == a.Kind && old.Address == a.Address }) {
		p.Record.Anchor = append(p.Record.Anchor, a)
	}
	return nil
}

func recordRows(p Plan) []Row {
	rows := []Row{{"record.level", string(p.Record.Level), p.Record.Origin.String()}}
	return append(rows, rowsOf("record.anchor", p.Record.Anchor, func(a Anchor) (fmt.Stringer, Origin) { return a, a.Origin })...)
}
