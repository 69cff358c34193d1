package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// alerts resolves where alerts and the head of the log go, and where rules come
// from. It refuses files that the command could read, forge or replace.
func (p *Plan) alerts(e Effective, h Host) error {
	var errs Errors
	x := explainer{plan: *p, host: h}
	for _, one := range e.entriesFor("record.anchor") {
		if fault := p.anchor(x, one); fault != nil {
			errs = append(errs, fault)
		}
	}
	ranks := map[string]int{}
	for _, one := range e.entriesFor("alerts.sinks") {
		if fault := p.sink(x, one, ranks); fault != nil {
			errs = append(errs, fault)
		}
	}
	for _, one := range e.entriesFor("alerts.rules") {
		if fault := p.rules(x, one); fault != nil {
			errs = append(errs, fault)
		}
	}
	return errs.orNil()
}

// sink adds one place for alerts. A later source's takes the place of an earlier
// one of the same kind and address.
func (p *Plan) sink(x explainer, one Entry, ranks map[string]int) *Error {
	s := *one.Sink
	s.Origin = one.Origin
	what := "the sink " + s.Kind
	paths := []*string{&s.Headers, &s.Secret, &s.Authority}
	socket, isSocket := strings.CutPrefix(s.Address, "unix://")
	switch {
	case s.Kind == "file":
		paths = append(paths, &s.Address)
	case s.Kind == "syslog" && isSocket:
		paths = append(paths, &socket)
	}
	if fault := x.files(one, what, paths...); fault != nil {
		return fault
	}
	if isSocket {
		s.Address = "unix://" + socket
	}
	if s.Kind == "file" {
		if fault := x.appendTarget(one, what, s.Address); fault != nil {
			return fault
		}
	}
	name := s.Kind + " " + s.Address
	at := slices.IndexFunc(p.Alerts.Sinks, s.samePlace)
	switch {
	case at < 0:
		p.Alerts.Sinks = append(p.Alerts.Sinks, s)
	case ranks[name] == one.rank:
		return fault(one.Origin, "", "the sink %s is already defined (%s)", strings.TrimSpace(s.Kind+" "+shownURL(s.Address)), p.Alerts.Sinks[at].Origin)
	default:
		p.Alerts.Sinks[at] = s
	}
	ranks[name] = one.rank
	return nil
}

// samePlace reports whether two sinks are of one kind and address.
func (s AlertSink) samePlace(other AlertSink) bool {
	return s.Kind == other.Kind && s.Address == other.Address
}

// maxRuleFiles bounds how many files of rules a directory may hold.
const maxRuleFiles = 1000

// rules adds one source of rules of detection. The files of a directory are checked
// too, because each could be a link.
func (p *Plan) rules(x explainer, one Entry) *Error {
	text, optional := strings.CutSuffix(one.Value, "?")
	at, fault := x.unchangeable(one, filepath.Clean(expand(text, one.Base, x.host.Home)))
	if fault != nil {
		if optional && errors.Is(fault, fs.ErrNotExist) {
			return nil
		}
		return fault
	}
	if at.dir {
		files, err := filepath.Glob(filepath.Join(escapeGlob(at.path), "*.yaml"))
		if err != nil || len(files) > maxRuleFiles {
			return &Error{Origin: one.Origin, Msg: fmt.Sprintf("alerts.rules: %s holds %d files of rules; at most %d are allowed", quote(at.path), len(files), maxRuleFiles), cause: err}
		}
		for _, file := range files {
			if _, fault := x.unchangeable(one, file); fault != nil {
				return fault
			}
		}
	}
	if !slices.ContainsFunc(p.Alerts.Rules, func(old RuleSource) bool { return old.Path == at.path }) {
		p.Alerts.Rules = append(p.Alerts.Rules, RuleSource{at.path, one.Origin})
	}
	return nil
}

// unchangeable resolves the path of rules, and refuses one that anyone but the user or
// root can change.
func (x explainer) unchangeable(one Entry, path string) (located, *Error) {
	links, real := steps(path)
	at, err := locate(real)
	switch {
	case err != nil:
		return at, &Error{Origin: one.Origin, Msg: "alerts.rules: the path " + quote(path) + ": " + reason(err), cause: err}
	case !at.dir && !at.file:
		return at, fault(one.Origin, "", "alerts.rules: %s is neither a directory nor a regular file", quote(real))
	case at.owner != 0 && at.owner != x.host.UID:
		return at, fault(one.Origin, "make a copy of your own and read it first", "alerts.rules: %s belongs to user %d, not to you or root", quote(real), at.owner)
	case at.mode&0o022 != 0:
		return at, fault(one.Origin, "chmod go-w "+quote(real), "alerts.rules: %s can be written by others (mode %#o)", quote(real), at.mode&0o777)
	}
	name, rule := x.changeableLink(links)
	if rule == "" {
		name, rule = x.changeable([]string{at.path})
	}
	if rule != "" {
		return at, fault(one.Origin, "move it to a directory that is not writable inside", "alerts.rules: %s is writable inside (%s), so that the command could change the rules", quote(name), rule)
	}
	for _, r := range append(slices.Clone(x.plan.Paths), PathRule{Path: x.plan.Workspace, Access: Write, Origin: Origin{File: "workspace"}}) {
		if r.Access == Write && within(r.Path, at.path) {
			return at, fault(one.Origin, "name a directory that holds rules only", "alerts.rules: %s holds %s, which is writable inside (%s)", quote(at.path), quote(r.Path), r.Origin)
		}
	}
	return at, nil
}

func alertRows(e Effective, p Plan) []Row {
	return slices.Concat(
		rowsOf("alerts.sinks", p.Alerts.Sinks, func(s AlertSink) (fmt.Stringer, Origin) { return s, s.Origin }),
		rowsOf("alerts.rules", p.Alerts.Rules, func(r RuleSource) (fmt.Stringer, Origin) { return cellText(r.Path), r.Origin }),
		e.rows("honeytokens"))
}
