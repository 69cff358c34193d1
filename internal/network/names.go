package network

import (
	"fmt"
	"net/netip"
	"strings"

	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// nameBytes is the limit of a name; texts of other kinds are cut to it in messages.
const nameBytes = policy.MaxName

// NameError says why something is not taken as a host name.
type NameError struct {
	Name   string // as it was given
	Reason string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("%q is not taken as a host name: %s", text.Cut(e.Name, nameBytes), e.Reason)
}

// Normalize gives the one form of a host name that is both compared and dialled:
// see policy.NormalName.
func Normalize(name string) (string, error) {
	normal, fault := policy.NormalName(name)
	if fault != "" {
		return "", &NameError{Name: name, Reason: fault}
	}
	return normal, nil
}

// normalizeHost gives the normal form of a host as a client names it: a name as
// Normalize has it, or an address literal as parseLiteral has it.
func normalizeHost(host string) (string, error) {
	if a, err := parseLiteral(host); err == nil {
		return a.String(), nil
	}
	if strings.ContainsAny(host, "[]:%") {
		return "", &NameError{Name: host, Reason: "it is neither a name nor an address"}
	}
	return Normalize(host)
}

// parseLiteral reads an address in its usual spelling: four decimal numbers, or IPv6
// with or without brackets. IPv4 inside IPv6 (::ffff:1.2.3.4) becomes IPv4. A zone is
// refused, because it names an interface of this host.
func parseLiteral(s string) (netip.Addr, error) {
	inner := s
	if bare, ok := strings.CutPrefix(s, "["); ok {
		if bare, ok = strings.CutSuffix(bare, "]"); !ok || !strings.Contains(bare, ":") {
			return netip.Addr{}, &NameError{Name: s, Reason: "brackets enclose an IPv6 address"}
		}
		inner = bare
	}
	a, err := netip.ParseAddr(inner)
	if err != nil {
		return netip.Addr{}, &NameError{Name: s, Reason: "it is not an address"}
	}
	if a.Zone() != "" {
		return netip.Addr{}, &NameError{Name: s, Reason: "an address with a zone names an interface of the host"}
	}
	return a.Unmap(), nil
}
