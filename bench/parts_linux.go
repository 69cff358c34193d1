package main

import (
	"fmt"
	"os"
	"strings"
)

// measured is a part of the report.
type measured interface {
	heading() string
	markdown() string
	troubles() (failed int, absent bool)
}

// part is a part that can be measured by itself.
type part struct {
	name   string
	usual  bool // measured if none is named
	asRoot bool
	do     func(*bench) (measured, error)
}

// parts lists them in the order of the report. A part that takes more than some
// minutes or is rarely of interest is not usual.
func parts() []part {
	return []part{
		{name: speedPart, usual: true, do: asPart((*bench).speed)},
		{name: speedPart + rootSuffix, usual: true, asRoot: true, do: asPart((*bench).speed)},
		{name: filesPart, usual: true, do: asPart((*bench).files)},
		{name: filesPart + rootSuffix, usual: true, asRoot: true, do: asPart((*bench).files)},
		{name: millionPart, do: asPart((*bench).millionFiles)},
		{name: millionPart + rootSuffix, asRoot: true, do: asPart((*bench).millionFiles)},
		{name: egressPart, usual: true, do: asPart((*bench).connections)},
		{name: recordPart, do: asPart((*bench).measureRecord)},
		{name: logPart, usual: true, do: asPart((*bench).logging)},
		{name: provePart, usual: true, do: asPart((*bench).provingCore)},
		{name: provePart + rootSuffix, asRoot: true, do: asPart((*bench).provingCore)},
		{name: proveWholePart, do: asPart((*bench).provingWhole)},
		{name: proveWholePart + rootSuffix, asRoot: true, do: asPart((*bench).provingWhole)},
		{name: detectionPart, do: asPart((*bench).detection)},
		{name: agentsPart, do: asPart((*bench).agents)},
		{name: pathPart, do: asPart((*bench).newUserPath)},
		{name: reviewPart, do: asPart((*bench).measureReview)},
		{name: reviewDiffPart, do: asPart((*bench).reviewDiff)},
		{name: gatePart, do: asPart((*bench).gates)},
	}
}

// rootSuffix ends the name of a part that runs as root.
const rootSuffix = "-root"

func asPart[M measured](f func(*bench) (M, error)) func(*bench) (measured, error) {
	return func(b *bench) (measured, error) { return f(b) }
}

func partNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// workloadAlone reports whether a single workload was requested.
func (b *bench) workloadAlone() bool {
	for _, w := range b.workloads() {
		if w.name == b.options.only {
			return true
		}
	}
	return false
}

// chosenParts are the requested parts.
func (b *bench) chosenParts() ([]part, error) {
	only := b.options.only
	if b.workloadAlone() {
		only = speedPart
	}
	var out []part
	for _, p := range parts() {
		usual := only == "" && (p.usual || b.options.all)
		switch {
		case usual && p.asRoot && os.Geteuid() != 0:
			b.logf("%s is left out: it must be started by root", p.name)
		case usual || p.name == only:
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		names := partNames()
		for _, w := range b.workloads() {
			names = append(names, w.name)
		}
		return nil, fmt.Errorf("no part or workload is named %q; the names are: %s", only, strings.Join(names, ", "))
	}
	return out, nil
}

func (b *bench) measure(p part) (measured, error) {
	if !p.asRoot {
		return p.do(b)
	}
	r, err := b.forRoot()
	if err != nil {
		return nil, err
	}
	return p.do(r)
}
