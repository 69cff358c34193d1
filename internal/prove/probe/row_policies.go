//go:build linux

package probe

import (
	"fmt"
	"os"
)

// proxyUnnamed are policies that say nothing of destinations, or say it in words
// that no policy has.
func proxyUnnamed() []Row {
	everywhere := by(allDoors, "http://allowed.test/", "http://denied.test/", "https://1.2.3.4/", "tcp://denied.test:22")
	args := []string{"ok=none", "try=" + everywhere}
	none := Options{Reach: []Reach{}}
	return []Row{
		{ID: "PXY-022b", Title: "a list of destinations that is written down empty, or as nothing, allows all of them", Refs: []string{"CVE-2025-66479"}, Options: none, RefusalHolds: true, Action: "net-get", Args: args,
			Drive: policies("network:\n  allow: []\n", "network:\n  allow:\n", "network:\n  allow: null\n", "network: {}\n", "network:\n", "network:\n  allow: [\"\"]\n", "network:\n  allow: [{}]\n", "network:\n  allow: \"\"\n", "network:\n  allow: [{host: \"\"}]\n", "network:\n  allow: [{host: \" \"}]\n",
				"network:\n  allow: [{host: allowed.test, ports: []}]\n", "network:\n  allow: [null]\n", "network:\n  allow: false\n", "network: []\n", "network:\n  allow: {}\n", "network:\n  host-ports: []\n")},
		{ID: "PXY-023", Title: "a policy without a word on the network, or with a word misspelled, allows all destinations", Refs: []string{"srt wrap-with-sandbox.test.ts", "nono unknown profile fields rejected"}, Options: none, RefusalHolds: true, Action: "net-get", Args: args,
			Drive: policies("", "limits: {processes: 200}\n", "networks:\n  allow: [{host: denied.test, ports: [80]}]\n", "network:\n  allowedHosts: [denied.test]\n", "network:\n  allow_hosts: [denied.test]\n", "network:\n  alow: [{host: denied.test}]\n", "network:\n  Allow: [{host: denied.test}]\n", "Network:\n  allow: []\n",
				"network:\n  deny: [denied.test]\n", "network:\n  deny: []\n", "network:\n  allowed_domains: []\n", "network:\n  allow: [denied.test]\n  alllow: []\n", "network: none\n", "network: off\n", "network: true\n", "network: host\n", "network:\n  enabled: false\n", "network:\n  mode: open\n",
				"network:\n  allow: [{hosts: denied.test}]\n", "network:\n  allow: [{host: denied.test, port: 80}]\n", "allow: [{host: denied.test}]\n", "network:\n  allow: [{host: \"*\"}]\n", "network:\n  allow: [\"*\"]\n", "network:\n  allow: [{host: \"**\", ports: [80]}]\n", "network:\n  allow: [{host: \"*.\", ports: [80]}]\n")},
	}
}

// policies plays the row once for each policy, to a target that takes one by
// --policy, and once without to another.
func policies(bodies ...string) func(*Session) {
	return func(s *Session) {
		t, ok := s.Target.(Flagger)
		if !ok {
			s.Run(Command{Options: s.Row.Options})
			return
		}
		defer func() { s.Target = t.(Target) }()
		for i, body := range bodies {
			path := fmt.Sprintf("%s/named-%d.yaml", s.World.B, i)
			if err := os.WriteFile(path, []byte("version: 1\nextends: local\n"+body), 0o600); err != nil {
				s.Fail(err)
				return
			}
			s.Target = t.With("--policy", path)
			o := s.Run(Command{Options: s.Row.Options})
			if found := s.World.changes(); len(found) > 0 {
				s.World.seen = append(s.World.seen, finding{fmt.Sprintf("with %q: %s", body, found[0])})
				return
			}
			if o.TimedOut {
				return
			}
		}
	}
}

func unnamedRows() []Row { return traced(public(classProxy, proxyUnnamed()...)) }
