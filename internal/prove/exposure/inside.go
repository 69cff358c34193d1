package exposure

import (
	"path"
	"slices"
	"strings"
)

// metadataAddress is the address of the metadata service in clouds.
const metadataAddress = "169.254.169.254"

// Verdict is the answer of `holdfast policy explain --json` about reading,
// writing or reaching something.
type Verdict struct {
	Allowed bool   `json:"allowed"`
	Private bool   `json:"private"` // what is written goes to a layer that is discarded
	Why     string `json:"why"`
	Rule    string `json:"rule"`
}

// Answer is its answer about a path or a host.
type Answer struct {
	Query   string   `json:"query"`
	Read    *Verdict `json:"read"`
	Write   *Verdict `json:"write"`
	Connect *Verdict `json:"connect"`
}

// Entry is a line of the policy that `holdfast policy show --json` prints.
type Entry struct {
	Section string `json:"section"`
	Value   string `json:"value"`
	Origin  string `json:"origin"`
}

// Credential is a credential that the policy lends, as the same command prints
// it.
type Credential struct {
	Env    []string `json:"env"`   // variables that hold its placeholder
	Hosts  []string `json:"hosts"` // to which it is sent
	Origin string   `json:"origin"`
}

// Boundary is a run inside Holdfast, as its command line explains it: it decides
// about each finding.
type Boundary struct {
	Profile     string       `json:"profile"`
	Workspace   string       `json:"workspace"`
	Entries     []Entry      `json:"entries"`
	Credentials []Credential `json:"credentials"`
	// Explain answers about paths and hosts, in their order.
	Explain func(queries []string) ([]Answer, error) `json:"-"`

	answers map[string]Answer
}

// Values are the values of a section.
func (b *Boundary) Values(section string) (values []string) {
	for _, e := range b.Entries {
		if e.Section == section {
			values = append(values, e.Value)
		}
	}
	return values
}

// queryAll queries all findings at once.
func (b *Boundary) queryAll(found []Finding, check func(Finding) (Check, bool)) error {
	queries := []string{metadataAddress}
	for _, f := range found {
		c, known := check(f)
		if known && slices.Contains([]Via{ByReading, ByWriting, BySocket}, c.Via) && path.IsAbs(f.Object) && !slices.Contains(queries, f.Object) {
			queries = append(queries, f.Object)
		}
	}
	b.answers = map[string]Answer{}
	for some := range slices.Chunk(queries, 200) {
		answers, err := b.Explain(some)
		if err != nil {
			return err
		}
		for _, a := range answers {
			b.answers[a.Query] = a
		}
	}
	return nil
}

// Fate determines what happens to a finding inside. What cannot be explained
// counts as handed over.
func (b *Boundary) Fate(f Finding, c Check) Fate {
	switch c.Via {
	case ByReading:
		return b.reading(f.Object)
	case ByWriting:
		return b.writing(f.Object)
	case BySocket:
		return b.socket(f.Object)
	case ByVariable:
		return b.variable(f.Object)
	case ByPort:
		return b.port(f.Object)
	case ByMetadata:
		return b.metadata()
	}
	kind := Refused
	if c.Inside == ownProc {
		kind = Absent
	}
	return Fate{Kind: kind, Why: c.Inside}
}

func (b *Boundary) explain(path string) (read, write Verdict, unknown *Fate) {
	a := b.answers[path]
	if a.Read == nil || a.Write == nil {
		return read, write, &Fate{Kind: Handed, Why: "it could not be explained"}
	}
	return *a.Read, *a.Write, nil
}

func (b *Boundary) reading(path string) Fate {
	read, _, unknown := b.explain(path)
	switch {
	case unknown != nil:
		return *unknown
	case read.Allowed:
		return Fate{Handed, "the policy shows it", read.Rule}
	case strings.HasPrefix(read.Why, "hidden"):
		return Fate{Masked, clause(read.Why), read.Rule}
	}
	return Fate{Absent, clause(read.Why), read.Rule}
}

// clause is the first part of an explanation; the rest, how to allow it, is
// irrelevant here.
func clause(why string) string {
	why, _, _ = strings.Cut(why, "; cannot be allowed")
	return strings.TrimPrefix(why, Absent+": ")
}

func (b *Boundary) writing(path string) Fate {
	read, write, unknown := b.explain(path)
	switch {
	case unknown != nil:
		return *unknown
	case write.Allowed && write.Private:
		return Fate{Masked, write.Why, write.Rule}
	case write.Allowed:
		return Fate{Handed, write.Why, write.Rule}
	case read.Allowed:
		return Fate{Refused, clause(write.Why), write.Rule}
	}
	return Fate{Absent, clause(write.Why), write.Rule}
}

func (b *Boundary) socket(name string) Fate {
	if strings.HasPrefix(name, "@") {
		return Fate{Kind: Refused, Why: "the run has a network namespace of its own, in which no abstract socket of the host is"}
	}
	fate := b.reading(name)
	if _, _, unknown := b.explain(name); unknown == nil && fate.Kind == Handed {
		return Fate{Masked, "sockets that are there when a run begins are covered in trees that are in view", fate.Rule}
	}
	return fate
}

func (b *Boundary) variable(name string) Fate {
	for _, c := range b.Credentials {
		if slices.Contains(c.Env, name) && len(c.Hosts) > 0 {
			return Fate{Masked, "inside it holds a placeholder, which is replaced on the way to " + c.Hosts[0], c.Origin}
		}
	}
	for _, e := range b.Entries {
		if e.Section == "environment" && strings.HasPrefix(e.Value, name+"=") {
			return Fate{Handed, "the policy hands it in", e.Origin}
		}
	}
	return Fate{Kind: Absent, Why: "the environment inside is new, and the policy does not name it"}
}

func (b *Boundary) port(port string) Fate {
	for _, e := range b.Entries {
		if e.Section == "network.host-ports" && e.Value == port {
			return Fate{Handed, "network.host-ports shows it", e.Origin}
		}
	}
	return Fate{Kind: Absent, Why: "the loopback inside is a private one"}
}

func (b *Boundary) metadata() Fate {
	switch connect := b.answers[metadataAddress].Connect; {
	case connect == nil:
		return Fate{Kind: Handed, Why: "it could not be explained"}
	case connect.Allowed:
		return Fate{Handed, connect.Why, connect.Rule}
	default:
		return Fate{Refused, connect.Why, connect.Rule}
	}
}
