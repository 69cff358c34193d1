package policy

import (
	"net/netip"
	"slices"
	"strings"
)

// MetadataRange is where clouds hand out credentials to any caller on the right machine.
type MetadataRange struct {
	Prefix netip.Prefix
	Words  string // completes "… is at 169.254.169.254, "
}

// MetadataRanges are refused to every rule: a rule with internal: true is written for a
// service of the user's network, and a name in it that an attacker makes resolve to one of
// these would give away the machine's own rights.
var MetadataRanges = []MetadataRange{
	{netip.MustParsePrefix("169.254.169.254/32"), "the metadata service of most clouds"},
	{netip.MustParsePrefix("169.254.170.2/32"), "the credential service of AWS ECS"},
	{netip.MustParsePrefix("169.254.170.23/32"), "the credential service of AWS EKS"},
	{netip.MustParsePrefix("169.254.0.23/32"), "the metadata service of Tencent Cloud"},
	{netip.MustParsePrefix("169.254.42.42/32"), "the metadata service of Scaleway"},
	{netip.MustParsePrefix("100.100.100.200/32"), "the metadata service of Alibaba Cloud"},
	{netip.MustParsePrefix("168.63.129.16/32"), "the host service of Azure"},
	{netip.MustParsePrefix("192.0.0.192/32"), "the metadata service of Oracle Cloud"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "the metadata range of AWS"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "the metadata service of Google Cloud"},
	{netip.MustParsePrefix("fd00:42::42/128"), "the metadata service of Scaleway"},
	{netip.MustParsePrefix("fd00:a9fe:a9fe::/48"), "the metadata range of Akamai Cloud"},
}

// metadataNames are the names of these services, with all below them.
var metadataNames = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal", "metadata.azure.internal", "metadata.tencentyun.com", "metadata.internal"}

// NoMetadata is why a host that IsMetadata is not suggested for a rule.
const NoMetadata = "no rule allows it, and none should: a metadata service gives the rights of this machine to any caller"

// IsMetadata reports whether a host, in normal form, is a metadata service by its name or
// its address.
func IsMetadata(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return slices.ContainsFunc(MetadataRanges, func(r MetadataRange) bool { return r.Prefix.Contains(a.Unmap()) })
	}
	return slices.ContainsFunc(metadataNames, func(name string) bool { return host == name || strings.HasSuffix(host, "."+name) })
}
