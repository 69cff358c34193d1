package detect

import (
	"net/netip"
	"strings"
	"sync"
)

// hostTable classifies hosts: a mark, then names, each with all below it.
const hostTable = `
metadata metadata.google.internal metadata.goog instance-data.ec2.internal metadata.azure.internal metadata.tencentyun.com metadata.internal
cluster  kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local kubernetes
loopback localhost
tunnel   ngrok.io ngrok.app ngrok-free.app ngrok.com trycloudflare.com argotunnel.com loca.lt localtunnel.me serveo.net localhost.run pagekite.me telebit.io zrok.io bore.pub tunnelmole.com pinggy.io playit.gg devtunnels.ms tailscale.com localxpose.io onion.to onion.ws tor2web.org
drop     pastebin.com paste.ee hastebin.com dpaste.com dpaste.org ix.io sprunge.us termbin.com 0x0.st transfer.sh file.io tmpfiles.org bashupload.com gofile.io anonfiles.com catbox.moe temp.sh oshi.at wetransfer.com webhook.site requestbin.com requestbin.net pipedream.net beeceptor.com hookb.in requestcatcher.com postb.in interact.sh oast.pro oast.live oast.site oast.online oast.fun oast.me burpcollaborator.net oastify.com dnslog.cn ceye.io canarytokens.com rentry.co ghostbin.com privatebin.net discordapp.com hooks.slack.com api.telegram.org ipfs.io dweb.link nft.storage
resolver dns.google cloudflare-dns.com one.one.one.one dns.quad9.net doh.opendns.com dns.nextdns.io dns.adguard-dns.com doh.cleanbrowsing.org mozilla.cloudflare-dns.com chrome.cloudflare-dns.com dns.alidns.com doh.pub
`

// label is the length of a label that looks like data: names that people give
// are shorter, those of content networks rarely this long.
const label = 45

var hostNames = sync.OnceValue(func() map[string]mark {
	m := map[string]mark{}
	for word, names := range tableRows(hostTable) {
		for _, name := range names {
			m[name] |= markOf(word)
		}
	}
	return m
})

// hostMarks classifies host:port, or a name alone.
func hostMarks(s string) mark {
	host := hostOf(s)
	if host == "" {
		return 0
	}
	if host == "netlink" {
		return loopback
	}
	if c := host[0]; c >= '0' && c <= '9' || strings.IndexByte(host, ':') >= 0 {
		if a, err := netip.ParseAddr(host); err == nil {
			return addressMarks(a.Unmap()) | literal
		}
	}
	return nameMarks(strings.TrimSuffix(host, "."))
}

// nameMarks looks up a name, and all names that it is below.
func nameMarks(host string) mark {
	table := hostNames()
	var m mark
	for rest := host; rest != ""; {
		m |= table[rest]
		i := strings.IndexByte(rest, '.')
		if i < 0 {
			i = len(rest)
		}
		if i >= label {
			m |= longLabel
		}
		rest = rest[min(i+1, len(rest)):]
	}
	return m
}

func addressMarks(a netip.Addr) mark {
	switch {
	case isMetadata(a):
		return metadata
	case a.IsLoopback(), a.IsUnspecified(), isSynthetic(a):
		return loopback
	case a.IsPrivate(), a.IsLinkLocalUnicast():
		return private
	case a.Is4() && a.As4()[0] == 100 && a.As4()[1]&0xc0 == 64: // RFC 6598
		return private
	case isResolver(a):
		return resolver
	}
	return 0
}

// isSynthetic reports whether an address is one that represents a name inside
// (RFC 2544): it says nothing by itself.
func isSynthetic(a netip.Addr) bool {
	b := a.As16()
	return a.Is4() && b[12] == 198 && b[13]&0xfe == 18
}

// isResolver reports whether an address is that of a public name service, which
// programs use instead of the one that they were given.
func isResolver(a netip.Addr) bool {
	if !a.Is4() {
		return false
	}
	switch a.As4() {
	case [4]byte{8, 8, 8, 8}, [4]byte{8, 8, 4, 4}, [4]byte{1, 1, 1, 1}, [4]byte{1, 0, 0, 1}, [4]byte{9, 9, 9, 9}:
		return true
	}
	return false
}

// isMetadata reports whether an address is that of a cloud's metadata service:
// AWS, Google, Azure, Oracle and DigitalOcean share the first; the others are
// AWS over IPv6 and for tasks, Alibaba, and Azure's own.
func isMetadata(a netip.Addr) bool {
	if a.Is4() {
		switch a.As4() {
		case [4]byte{169, 254, 169, 254}, [4]byte{169, 254, 170, 2}, [4]byte{169, 254, 170, 23}, [4]byte{100, 100, 100, 200}, [4]byte{168, 63, 129, 16}:
			return true
		}
		return false
	}
	b := a.As16()
	return b == [16]byte{0xfd, 0, 0x0e, 0xc2, 14: 2, 15: 0x54}
}
