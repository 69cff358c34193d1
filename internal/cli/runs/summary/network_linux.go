package summary

import (
	"fmt"
	"slices"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/cli/logs/stories"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/run"
)

// interceptionText describes how connections got to the supervisor.
func interceptionText(r boundary.Rung) string {
	if r == "" || r == boundary.Closed {
		return "none, nothing was allowed"
	}
	return "by " + string(r)
}

// refusals says after a run what of the network was refused or did not answer, a
// line each, and what of the run is new in its workspace.
func (a *app) refusals(result run.Result) {
	a.destinations("refused", byHost(result.Refused))
	a.destinations("unreachable", result.Unreachable)
	a.ports(result.Ports)
	a.noteNews(result.New)
}

// files says after a run which files programs inside were refused, and why.
func (a *app) files(plan policy.Plan, r run.Result) {
	lines, first, rest := stories.Refused(r.Files, plan)
	for _, line := range lines {
		a.Note(command.Yellow, "refused", "%s", line)
	}
	if first == "" {
		return
	}
	if rest += r.FilesMore; rest > 0 {
		a.Note(command.Yellow, "refused", "and %d more: holdfast log show %s", rest, r.Session)
	}
	a.Note(command.Cyan, "hint", "what would allow it: holdfast policy explain %s", text.Word(first))
}

// fewPorts is how many refused ports of the loopback are named.
const fewPorts = 4

// ports says which ports of the run's loopback were asked for in vain.
func (a *app) ports(all []int) {
	for i, port := range all {
		if i == fewPorts {
			a.Note(command.Cyan, "hint", "and %d more ports of localhost", len(all)-i)
			return
		}
		a.Note(command.Cyan, "hint", "nothing inside listens on localhost:%d, for the loopback in there is its own; to reach a service of this machine: --host-port %d", port, port)
	}
}

// byHost makes one of the refusals of a host that the same flag would allow: at the ports
// 80 and 443. It has no port where theirs differ.
func byHost(all []run.Refusal) []run.Refusal {
	var hosts []run.Refusal
	for _, r := range all {
		i := slices.IndexFunc(hosts, func(h run.Refusal) bool {
			return r.Flag != "" && h.Flag == r.Flag && h.Name == r.Name && h.Reason == r.Reason && h.Rule == r.Rule
		})
		if i < 0 {
			hosts = append(hosts, r)
			continue
		}
		hosts[i].Count += r.Count
		if hosts[i].Port != r.Port {
			hosts[i].Port = 0
		}
	}
	return hosts
}

// summaryLines is how many destinations of a kind a summary names.
const summaryLines = 40

func (a *app) destinations(what string, all []run.Refusal) {
	for i, r := range all {
		if i == summaryLines {
			a.Note(command.Yellow, what, "and %d more, in the record of the run (--verbose names it)", len(all)-i)
			return
		}
		colour, kind := command.Yellow, what
		if r.High {
			colour, kind = command.Red, "alert"
		}
		line := r.Where() + " (" + r.Reason
		if r.Rule != "" && r.Rule != "-" {
			line += "; nearest rule " + r.Rule
		}
		line += ")"
		if r.Count > 1 {
			line += fmt.Sprintf(", %d times", r.Count)
		}
		if r.Flag != "" {
			line += "; to allow it: " + r.Flag
		}
		a.Note(colour, kind, "%s", text.Line(line))
	}
}
