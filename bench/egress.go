package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The names of the layouts in which a program reaches a server.
const (
	direct = "direct"
	socat  = "socat"
	slirp  = "slirp4netns"
	pasta  = "pasta"
)

// figure is something that is measured once per round in every layout.
type figure string

const (
	freshTypical figure = "fresh connection, ms"
	freshSlow    figure = "fresh connection, 99th percentile, ms"
	idleKiB      figure = "KiB an idle connection"
	idleFiles    figure = "descriptors of the supervisor an idle connection"
	eventTypical figure = "event, ms"
	eventSlow    figure = "event, 99th percentile, ms"
	launch       figure = "start of true, ms"
)

// bulkRate is in MB/s, bulkCost in seconds of processor time per GB, of
// everything but the two ends.
func bulkRate(conns int) figure { return figure(fmt.Sprintf("bulk %d, MB/s", conns)) }
func bulkCost(conns int) figure { return figure(fmt.Sprintf("bulk %d, s a GB", conns)) }

// tlsRate is in MB/s; tlsCost, of everything but the two ends, and tlsEnds, of
// the two ends, in seconds of processor time per GB.
func tlsRate(protocol string) figure { return figure(protocol + ", MB/s") }
func tlsCost(protocol string) figure { return figure(protocol + ", s a GB") }
func tlsEnds(protocol string) figure { return figure(protocol + ", s a GB of the ends") }

// The protocols of terminated TLS.
const (
	http1 = "HTTP/1.1"
	http2 = "HTTP/2"
)

var bulkConns = []int{1, 32, 256}

// egress are the results about connections.
type egress struct {
	quick      bool
	date       time.Time
	machine    string
	versions   []string
	user       string
	rounds     int
	loadBefore string
	loadAfter  string
	absent     string   // why nothing was measured; "" if it was
	missing    []string // what could not be measured, and why
	failed     []string // what should have been measured, but failed
	layouts    []string // the measured ones, in the order of the report
	found      map[figure]map[string][]float64
	bytes      int64 // of the program
	modules    []string
}

func (e *egress) add(f figure, layout string, v float64) {
	if e.found == nil {
		e.found = map[figure]map[string][]float64{}
	}
	if e.found[f] == nil {
		e.found[f] = map[string][]float64{}
	}
	e.found[f][layout] = append(e.found[f][layout], v)
}

func (e *egress) median(f figure, layout string) float64 {
	return spreadOf(e.found[f][layout]).median
}

// share is the ratio of a figure in two layouts.
func (e *egress) share(f figure, layout, other string) spread {
	return ratioOf(e.found[f][layout], e.found[f][other])
}

// difference is the difference of a figure in two layouts, round by round.
func (e *egress) difference(f figure, layout, other string) spread {
	a, b := e.found[f][layout], e.found[f][other]
	var more []float64
	for i := range min(len(a), len(b)) {
		more = append(more, a[i]-b[i])
	}
	return spreadOf(more)
}

// The goals for connections.
const (
	bulkTimesSocat = 4
	costTimesSocat = 1.0 / 8
	freshLimit     = 0.20 // ms more than direct
	idleLimit      = 45   // KiB, including the client and the kernel
	filesLimit     = 2
	tlsShare       = 0.50 // times direct TLS, or
	tlsTimesEnds   = 1.15 // times the processor time of the two ends of direct TLS
	eventLimit     = 10   // ms more than direct
	launchLimit    = 10   // ms more than without interception
)

var bulkShares = map[int]float64{1: 0.45, 32: 0.50, 256: 0.45}

func (e *egress) verdicts() []verdict {
	var all []verdict
	for _, n := range bulkConns {
		all = append(all, atLeast(fmt.Sprintf("download, connections: %d, times direct", n), bulkShares[n], e.share(bulkRate(n), holdfast, direct).median, "%.2f"))
	}
	return append(all,
		atLeast("download, connections: 1, times socat", bulkTimesSocat, e.share(bulkRate(1), holdfast, socat).median, "%.2f"),
		judge("processor time a GB, connections: 1, times socat", costTimesSocat, e.share(bulkCost(1), holdfast, socat).median, "%.3f"),
		judge("new connection, ms more than direct", freshLimit, e.difference(freshTypical, holdfast, direct).median, "%.3f"),
		judge("idle connection, KiB", idleLimit, e.median(idleKiB, holdfast), "%.1f"),
		judge("idle connection, descriptors of the supervisor", filesLimit, e.median(idleFiles, holdfast), "%.2f"),
		e.tlsVerdict(http1),
		e.tlsVerdict(http2),
		judge("streamed event, ms more than direct", eventLimit, e.difference(eventTypical, holdfast, direct).median, "%.2f"),
		judge("start of a run with --allow, ms more than without", launchLimit, e.difference(launch, withAllow, withoutAllow).median, "%.2f"))
}

// tlsGoal is followed by the protocol.
const tlsGoal = "terminated TLS, times direct TLS or processor time a GB times that of its two ends: "

// tlsVerdict judges terminated TLS by its rate or, if there are too few cores for
// that, by what the supervisor adds to the processor time of the two ends.
func (e *egress) tlsVerdict(protocol string) verdict {
	return either(tlsGoal+protocol,
		atLeast("", tlsShare, e.share(tlsRate(protocol), holdfast, direct).median, "%.2f"),
		judge("", tlsTimesEnds, e.median(tlsCost(protocol), holdfast)/e.median(tlsEnds(protocol), direct), "%.2f"))
}

// The two ways to start whose difference is the cost of interception.
const (
	withAllow    = "with --allow"
	withoutAllow = "without"
)

// egressTitle begins the part of the report.
const egressTitle = "\n# Connections\n"

func (e *egress) markdown() string {
	var b strings.Builder
	b.WriteString(egressTitle + "\nWritten by `go run ./bench`, by itself with `-only egress`.\n\n")
	if e.absent != "" {
		b.WriteString("Not measured here: " + e.absent + ".\n")
		return b.String()
	}
	if e.quick {
		b.WriteString("**A quick run with small inputs and few rounds: it shows that the programs work, and its figures mean nothing.**\n\n")
	}
	fmt.Fprintf(&b, "- Machine: %s\n- Load before and after: %s, %s\n- Versions: %s\n- Everything ran as %s, %s, %d rounds after one to warm up, all layouts in turn within each.\n\n",
		e.machine, e.loadBefore, e.loadAfter, strings.Join(e.versions, "; "), e.user, e.date.Format("2006-01-02 15:04 MST"), e.rounds)
	b.WriteString("## Goals for connections\n\n" + e.goals())
	b.WriteString("\n## Download\n\nMB/s, times direct, and seconds of processor time a GB of everything but client and server.\n\n" + e.bulkTable())
	b.WriteString("\n## New connections\n\nOne after the other, each for a request and an answer of 8 bytes: the medians of all rounds' medians and 99th percentiles.\n\n" + e.freshTable())
	b.WriteString("\n## Idle connections\n\nWhat all processes but the server (PSS) and the kernel (sockets, files, page tables, stacks) have more than before, the server's sockets included. Every layout is started anew for each of the rounds.\n\n" + e.idleTable())
	b.WriteString("\n## TLS\n\nECDSA P-256, both ends Go. Holdfast ends TLS and speaks it anew upstream. Events come from before the server's write to after the client's read, every " + eventPause.String() + ".\n\n" + e.tlsTable())
	b.WriteString("\n## Start and size\n\n" + e.sizes())
	b.WriteString("\n## Remarks on connections\n\n")
	for _, s := range egressRemarks {
		b.WriteString("- " + s + "\n")
	}
	return b.String()
}

func (e *egress) goals() string {
	var remarks []string
	for _, why := range e.missing {
		remarks = append(remarks, "not measured: "+why+".")
	}
	for _, why := range e.failed {
		remarks = append(remarks, "FAILED: "+strings.Join(strings.Fields(why), " "))
	}
	return goalTable(e.verdicts(), remarks)
}

func (e *egress) bulkTable() string {
	t := table{header: []string{"layout"}}
	for _, n := range bulkConns {
		t.header = append(t.header, fmt.Sprintf("%d conn. MB/s", n), "× direct", "s a GB")
	}
	for _, l := range e.layouts {
		row := []string{l}
		for _, n := range bulkConns {
			row = append(row, number(e.median(bulkRate(n), l)), e.share(bulkRate(n), l, direct).String(), formatSmall(e.median(bulkCost(n), l)))
		}
		t.add(row...)
	}
	return t.String()
}

func (e *egress) freshTable() string {
	t := table{header: []string{"layout", "median ms", "99th percentile ms", "median, ms more than direct"}}
	for _, l := range e.layouts {
		t.add(l, formatSmall(e.median(freshTypical, l)), formatSmall(e.median(freshSlow, l)), e.difference(freshTypical, l, direct).String())
	}
	return t.String()
}

func (e *egress) idleTable() string {
	t := table{header: []string{"layout", "connections", "KiB each", "descriptors each, of the supervisor"}}
	for _, l := range e.layouts {
		t.add(l, fmt.Sprint(idleConns(l, e.quick)), number(e.median(idleKiB, l)), number(e.median(idleFiles, l)))
	}
	return t.String()
}

func (e *egress) tlsTable() string {
	t := table{header: []string{"layout"}}
	for _, p := range []string{http1, http2} {
		t.header = append(t.header, p+" MB/s", "× direct", "s a GB", "s a GB of the ends")
	}
	t.header = append(t.header, "event, median ms", "99th percentile ms", "median, ms more than direct")
	for _, l := range []string{direct, holdfast} {
		row := []string{l}
		for _, p := range []string{http1, http2} {
			row = append(row, number(e.median(tlsRate(p), l)), e.share(tlsRate(p), l, direct).String(), formatSmall(e.median(tlsCost(p), l)), formatSmall(e.median(tlsEnds(p), l)))
		}
		t.add(append(row, formatSmall(e.median(eventTypical, l)), formatSmall(e.median(eventSlow, l)), e.difference(eventTypical, l, direct).String())...)
	}
	return t.String()
}

func (e *egress) sizes() string {
	t := table{header: []string{"start of `true`", "median ms"}}
	t.add("`holdfast run true`", number(e.median(launch, withoutAllow)))
	t.add("`holdfast run --allow example.org true`", number(e.median(launch, withAllow)))
	t.add("difference, round by round", e.difference(launch, withAllow, withoutAllow).String())
	return t.String() + fmt.Sprintf("\nThe program has %.1f MiB, with its symbols and the network stack for hosts without nf_tables, and is made of %d modules besides its own: %s.\n",
		float64(e.bytes)/(1<<20), len(e.modules), strings.Join(e.modules, ", "))
}

// idleConns is the number of idle connections in a layout; fewer if it starts two
// processes for each.
func idleConns(layout string, quick bool) int {
	switch {
	case quick:
		return 50
	case layout == socat:
		return 100
	}
	return 1000
}

// formatSmall formats small numbers.
func formatSmall(v float64) string {
	if math.IsNaN(v) || v >= 10 {
		return number(v)
	}
	return fmt.Sprintf("%.3f", v)
}

func (e *egress) heading() string { return egressTitle }

func (e *egress) troubles() (failed int, absent bool) { return len(e.failed), e.absent != "" }
