package realtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// way is how a program reaches the network.
type way struct {
	name    string
	bare    bool // without a boundary: the control for the other two
	inspect bool // TLS is terminated by the boundary
}

var ways = []way{
	{name: "bare", bare: true},
	{name: "passed"},
	{name: "inspected", inspect: true},
}

// The variables that add the network's authority in programs with their own list
// of authorities.
const (
	nodeBundle = "NODE_EXTRA_CA_CERTS=" + testenv.NetworkBundle
	javaBundle = "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=authorities -Djavax.net.ssl.trustStorePassword=changeit"
)

// TestNetworkPrograms runs each program in each way. The names and servers are
// those of a private network.
func TestNetworkPrograms(t *testing.T) {
	testenv.WithNetwork(t, addresses, func(t *testing.T, n *testenv.Network) {
		testenv.Binary(t) // built before anything is timed
		root := t.TempDir()
		testenv.NoLeaks(t, root)
		w := newWorld(t, n, root)
		w.nameServer() // without it, programs that also ask for IPv6 wait for an answer
		for _, e := range downloads {
			for _, way := range ways {
				if e.plain && way.inspect || e.same && way.bare || e.same && !e.plain && !way.inspect {
					continue // nothing to terminate; run by the other ways; nothing that could change
				}
				t.Run(e.name+" "+way.name, func(t *testing.T) {
					t.Parallel()
					e.run(t, w, way)
				})
			}
		}
	})
}

func (e download) run(t *testing.T, w *world, way way) {
	p := newFixture(t, w.root, e.needs...)
	p.write(w.files)
	p.write(e.files)
	if e.client {
		p.bare(`cp "$0" client`, w.client)
	}
	if !way.inspect && e.prepare != "" {
		p.bare(e.prepare)
	}
	proxy, socks := "-x http://127.0.0.1:3128", "-x socks5h://127.0.0.1:3128"
	if way.bare {
		proxy, socks = "", ""
	}
	script := strings.NewReplacer("{way}", way.name, "{proxy}", proxy, "{socks}", socks).Replace(e.script)
	if way.bare {
		p.env = append(p.env, e.own...)
		contains(t, p.bare(script), e.want...)
		return
	}
	want := slices.Clip(e.want)
	if e.same {
		want = append(want, p.bare(script))
	}
	if !e.plain {
		// The issuer of the certificate shows whether TLS was passed through.
		script += "\ncurl -sS -o /dev/null -w '%{certs}' https://" + e.host + "/ | grep ^Issuer:"
		want = append(want, map[bool]string{false: "Issuer:CN = Authority of a private network\n", true: "Issuer:CN = Holdfast"}[way.inspect])
	}
	args := append([]string{"run"}, e.flags(p, way)...)
	out, complaint := p.both(testenv.Binary(t), append(args, "--", "sh", "-euc", script)...)
	contains(t, out, want...)
	if !e.curious && strings.Contains(complaint, "holdfast: refused") || strings.Contains(complaint, "holdfast: alert") {
		t.Errorf("something was refused:\n%s", complaint)
	}
}

// flags are the options that let the boundary allow the errand.
func (e download) flags(p *fixture, way way) (flags []string) {
	if way.inspect {
		p.write(map[string]string{"../policy.yaml": fmt.Sprintf(
			"version: 1\nextends: local\nnetwork:\n  allow:\n    - {host: %s, inspect: true}\n", e.host)})
		return []string{"--policy", p.ws + "/../policy.yaml"}
	}
	flags = []string{"--allow", e.host}
	for _, v := range e.own {
		flags = append(flags, "--env", v)
	}
	return slices.Clip(flags)
}
