package netlab

import "net/netip"

// Loopback makes the network namespace of this process, which must be a new one,
// one with loopback alone, on which these ranges arrive too although no interface
// has their addresses. Nothing leads out. It needs CAP_NET_ADMIN.
func Loopback(own ...netip.Prefix) error {
	if err := ownNamespace(); err != nil {
		return err
	}
	changes := []change{linkUp("lo")}
	for _, p := range own {
		changes = append(changes, addRoute(route{to: p, link: "lo", own: true}))
	}
	return rtnetlink(changes...)
}
