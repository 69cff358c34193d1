package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// component is a part of the bill of materials, in CycloneDX 1.6.
type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// bill writes the bill of materials: the modules linked into each program, which
// the program itself lists (go version -m).
func (b *build) bill() error {
	parts := map[string]component{}
	var needs []dependency
	for _, arch := range b.arches {
		for _, name := range []string{"holdfast", "holdfast-prove"} {
			program, modules, err := b.linked(arch, name)
			if err != nil {
				return err
			}
			parts[program.Ref] = program
			need := dependency{Ref: program.Ref}
			for _, m := range modules {
				parts[m.Ref] = m
				need.DependsOn = append(need.DependsOn, m.Ref)
			}
			needs = append(needs, need)
		}
	}
	whole := component{Type: "application", Ref: "holdfast@" + b.version, Name: "holdfast", Version: b.version}
	text, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":     map[string]any{"timestamp": b.date.Format(time.RFC3339), "component": whole},
		"components":   slices.SortedFunc(maps.Values(parts), func(x, y component) int { return cmp.Compare(x.Ref, y.Ref) }),
		"dependencies": needs,
	}, "", "  ")
	if err != nil {
		return err
	}
	return save(filepath.Join(b.out(), fmt.Sprintf("holdfast-%s.cdx.json", b.version)), append(text, '\n'), 0o644)
}

// linked is a program and its modules, including the standard library.
func (b *build) linked(arch, name string) (component, []component, error) {
	path := filepath.Join(b.stage(arch), "bin", name)
	text, err := os.ReadFile(path)
	if err != nil {
		return component{}, nil, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return component{}, nil, err
	}
	program := component{
		Type: "application", Ref: name + "/linux/" + arch, Name: name, Version: b.version,
		Hashes:     []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(text))}},
		Properties: []property{{"commit", b.commit}, {"platform", "linux/" + arch}},
	}
	modules := []component{library("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, library(m.Path, m.Version, m.Sum))
	}
	return program, modules, nil
}

// library is a Go module; sum is its line in go.sum.
func library(path, version, sum string) component {
	purl := "pkg:golang/" + path + "@" + version
	c := component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
	if sum != "" {
		c.Properties = []property{{"go.sum", sum}}
	}
	return c
}
