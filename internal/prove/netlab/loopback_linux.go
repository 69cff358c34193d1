package netlab

import "net/netip"

// Loopback leaves the network namespace of this process, which must be new, with
// loopback only. Packets to the ranges in own arrive too, although no interface
// has those addresses. There is no way out. It needs CAP_NET_ADMIN.
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
