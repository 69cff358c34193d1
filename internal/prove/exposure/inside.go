package exposure

import (
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/policy"
)

// metadataAddress is where clouds answer about a machine.
const metadataAddress = "169.254.169.254"

// Boundary is a run inside Holdfast: what decides about each finding.
type Boundary struct {
	Plan  policy.Plan
	Host  policy.Host
	Names []policy.Reserved
}

// Fate says what becomes of a finding inside. What cannot be explained counts as
// handed over.
func (b Boundary) Fate(f Finding, c Check) Fate {
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

func (b Boundary) explain(path string) (policy.Answer, *Fate) {
	answer, err := policy.ExplainPath(b.Plan, b.Host, b.Names, path)
	if err != nil {
		return answer, &Fate{Kind: Handed, Why: "it could not be explained: " + err.Error()}
	}
	return answer, nil
}

func (b Boundary) reading(path string) Fate {
	answer, unknown := b.explain(path)
	switch {
	case unknown != nil:
		return *unknown
	case answer.Read.Allowed:
		return Fate{Handed, "the policy shows it", answer.Read.Rule}
	case strings.HasPrefix(answer.Read.Why, "hidden"):
		return Fate{Masked, clause(answer.Read.Why), answer.Read.Rule}
	}
	return Fate{Absent, clause(answer.Read.Why), answer.Read.Rule}
}

// clause is the beginning of an explanation: what follows is about how to allow
// it, which nobody asked here.
func clause(why string) string {
	why, _, _ = strings.Cut(why, "; cannot be allowed")
	return strings.TrimPrefix(why, Absent+": ")
}

func (b Boundary) writing(path string) Fate {
	answer, unknown := b.explain(path)
	switch {
	case unknown != nil:
		return *unknown
	case answer.Write.Allowed && b.private(answer.Resolved):
		return Fate{Masked, answer.Write.Why, answer.Write.Rule}
	case answer.Write.Allowed:
		return Fate{Handed, answer.Write.Why, answer.Write.Rule}
	case answer.Read.Allowed:
		return Fate{Refused, clause(answer.Write.Why), answer.Write.Rule}
	}
	return Fate{Absent, clause(answer.Write.Why), answer.Write.Rule}
}

// private says whether writes to a path go to a layer that is dropped.
func (b Boundary) private(path string) bool {
	best := policy.PathRule{}
	for _, r := range b.Plan.Paths {
		if paths.Within(r.Path, path) && len(r.Path) > len(best.Path) {
			best = r
		}
	}
	return best.Access == policy.Copy
}

func (b Boundary) socket(name string) Fate {
	if strings.HasPrefix(name, "@") {
		return Fate{Kind: Refused, Why: "the run has a network namespace of its own, in which no abstract socket of the host is"}
	}
	fate := b.reading(name)
	if fate.Kind == Handed && !strings.HasPrefix(fate.Why, "it could not") {
		return Fate{Masked, "sockets that are there when a run begins are covered in trees that are in view", fate.Rule}
	}
	return fate
}

func (b Boundary) variable(name string) Fate {
	for _, c := range b.Plan.Credentials {
		if slices.Contains(c.Env, name) {
			return Fate{Masked, "inside it holds a placeholder, which is replaced on the way to " + c.Hosts[0].Host, c.Origin.String()}
		}
	}
	for _, e := range b.Plan.Env {
		if e.Name == name {
			return Fate{Handed, "the policy hands it in", e.Origin.String()}
		}
	}
	return Fate{Kind: Absent, Why: "the environment inside is made anew, and the policy does not name it"}
}

func (b Boundary) port(port string) Fate {
	n, _ := strconv.Atoi(port)
	for _, p := range b.Plan.HostPorts {
		if p.Host == n {
			return Fate{Handed, "network.host-ports shows it", p.Origin.String()}
		}
	}
	return Fate{Kind: Absent, Why: "the loopback inside is a private one"}
}

func (b Boundary) metadata() Fate {
	answer, err := policy.Explain(b.Plan, b.Host, b.Names, metadataAddress)
	switch {
	case err != nil || answer.Connect == nil:
		return Fate{Kind: Handed, Why: "it could not be explained"}
	case answer.Connect.Allowed:
		return Fate{Handed, answer.Connect.Why, answer.Connect.Rule}
	}
	return Fate{Refused, answer.Connect.Why, answer.Connect.Rule}
}
