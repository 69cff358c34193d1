//go:build linux

package probe

import "sync"

// networkTraces says by ID what must be seen of the rows of the network. What the
// gateway refuses stands in the record with the place that was asked for, and so
// does what goes to an address past it; a few rows are let through by intention,
// and are seen all the same.
var networkTraces = sync.OnceValue(func() map[string]Trace {
	return joined(egressTraces, dnsTraces, metadataTraces, proxyTraces, channelTraces)
})

// Why nothing can be seen of a row of the network.
const interfaces = "an interface is changed by an ioctl, which the kernel refuses for want of a capability; to be told of ioctls would have every " +
	"terminal wait for the supervisor"

var egressTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"NET-001": did("sock.connect", "127.0.0.1:*"),
		"NET-003": did("sock.connect", "127.0.0.1:*", "[::1]:*"),
		"NET-004": did("sock.connect", "127.0.0.1:*", "[::1]:*"),
		"NET-004b": trail(
			did("sock.connect", "1.2.3.4:443", "1.2.3.4:123", "1.2.3.4:9", "93.184.215.14:443", "11.0.0.2:5353", "169.254.169.254:53"),
			raised("foreign-resolver", "metadata"),
		),
		"NET-006": did("sock.connect", "127.0.0.1:*"),
		"NET-006b": trail(
			refused("egress", "net.connect", "1.2.3.4:22", "1.2.3.4:443", "1.2.3.4:80", "10.9.8.7:80", "11.0.0.2:80", "93.184.215.14:443", "93.184.215.14:80", "[2600:11::2]:80", "[2606:2800:21f:cb07::1]:80"),
			refused("egress", "net.query", "denied.test"),
			raised("unknown-host"),
		),
		"NET-006c": trail(refused("egress", "net.connect", "denied.test:80"), refused("egress", "net.query", "denied.test"), raised("unknown-host")),
		"NET-007":  trail(refused("egress", "net.query", "denied.test"), raised("unknown-host")),
		"NET-008":  trail(did("sock.connect", "127.0.0.1:*"), raised("network-shell")),
		"NET-009":  trail(did("sock.connect", "127.0.0.1:*"), raised("network-shell")),
		"NET-010":  trail(refused("filter", "sys.call", "socket"), raised("socket-kind", "socket-past-network")),
		"NET-013":  trail(did("sock.connect", "127.0.0.1:*"), refused("filter", "sys.call", "socket"), raised("socket-kind")),
		"NET-013b": trail(
			refused("egress", "net.connect", "1.2.3.4:80", "169.254.169.254:80", "[2606:4700::1111]:80"),
			refused("filter", "sys.call", "socket"),
			raised("metadata", "socket-kind"),
		),
		"NET-015":  trail(refused("egress", "net.connect", "denied.test:443", "denied.test:80"), raised("unknown-host")),
		"NET-016":  refused("egress", "net.connect", "a.wild.test:22", "a.wild.test:8080", "allowed.test:22", "allowed.test:25", "allowed.test:8080", "allowed.test:8443"),
		"NET-016b": trail(refused("egress", "net.connect", "allowed.test:80"), raised("smuggling")),
		"NET-018":  nothing(declined),
		"NET-018b": trail(refused("filter", "sys.call", "clone"), raised("namespace")),
		"NET-019":  nothing(interfaces),
		"NET-019b": nothing(honest),
		"NET-019c": trail(
			refused("egress", "net.connect", "1.2.3.4:80"),
			refused("egress", "net.query", "denied.test"),
			refused("filter", "sys.call", "socket"),
			raised("socket-kind", "unknown-host"),
		),
		"NET-020":  refused("egress", "net.connect", "198.18.0.0:80", "198.18.0.1:80", "198.18.0.1:8080", "198.18.255.254:80", "198.19.255.254:443", "240.0.0.1:80"),
		"NET-021":  trail(refused("egress", "net.connect", "denied.test:80"), raised("unknown-host")),
		"NET-022":  refused("egress", "net.connect", "11.0.0.1:5433", "127.0.0.1:5433", "127.0.0.2:5433", "[::1]:5433", "localhost:5433"),
		"NET-022b": did("net.connect", "inner.test:80", "93.184.215.15:80", "localhost:5432"),
		"NET-023":  nothing(procRead),
		"NET-024": trail(
			refused("egress", "net.connect", "1.2.3.4:80", "denied.test:80"),
			refused("egress", "net.query", "denied.test"),
			raised("unknown-host"),
		),
	}
})

var dnsTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"DNS-001": trail(
			refused("egress", "net.query", "686968696869686968696869686968696869686968696869686968696869.probe.test", "denied.test"),
			raised("foreign-resolver", "unknown-host"),
		),
		"DNS-002": trail(
			refused("egress", "net.connect", "8.8.8.8:853"),
			refused("egress", "net.query", "686968696869686968696869686968696869686968696869686968696869.probe.test"),
			raised("foreign-resolver", "unknown-host"),
		),
		"DNS-003":  did("net.query", "allowed.test"),
		"DNS-003b": did("net.query", "allowed.test", "x.wild.test"),
		"DNS-004": trail(
			refused("egress", "net.connect", "686968696869686968696869686968696869686968696869686968696869.allowed.test:80", "686968696869686968696869686968696869686968696869686968696869.denied.test:443", "686968696869686968696869686968696869686968696869686968696869.denied.test:80", "686968696869686968696869686968696869686968696869686968696869.internal:80"),
			refused("egress", "net.query", "686968696869686968696869686968696869686968696869686968696869.allowed.test", "686968696869686968696869686968696869686968696869686968696869.denied.test", "686968696869686968696869686968696869686968696869686968696869.internal"),
			raised("dns-data", "unknown-host"),
		),
		"DNS-005": trail(refused("egress", "net.query", ""), raised("dns-limit")),
		"DNS-005b": trail(
			refused("egress", "net.query", "686968696869686968696869686968696869686968696869686968696869.686968696869686968696869686968696869686968696869686968696869.wild.test", "686968696869686968696869686968696869686968696869686968696869.wild.test"),
			raised("dns-limit"),
		),
		// A fast machine asks for more than 200 names a second, of which the record has
		// no name, before fifty were refused: dns-flood is raised on slow ones alone.
		"DNS-005c": trail(refused("egress", "net.query", ""), raised("dns-limit")),
		"DNS-006": trail(
			refused("egress", "net.connect", "1.1.1.1:443", "8.8.8.8:443", "dns.google:443"),
			refused("egress", "net.query", "dns.google"),
			raised("foreign-resolver", "unknown-host"),
		),
		"DNS-008": trail(
			refused("egress", "net.request", "loop.test:8080", "mapped.test:8080", "none.test:8080", "own.test:8080", "own6.test:8080", "six.test:8080", "zero.test:8080"),
			raised("name-to-inside"),
		),
		"DNS-008b": trail(
			refused("egress", "net.request", "n0.inner.test:80", "n11.inner.test:80", "n14.inner.test:80", "n17.inner.test:80", "n2.inner.test:80", "n22.inner.test:80", "n25.inner.test:80", "n28.inner.test:80", "n5.inner.test:80"),
			raised("name-to-inside"),
		),
		"DNS-009": did("net.connect", "flip.test:8080"),
		"DNS-010": did("net.connect", "mixed.test:8080", "mixed6.test:8080", "dead.test:8080"),
		"DNS-011": trail(
			refused("egress", "net.connect", "internal:80", "kubernetes.default.svc:80", "metadata.google.internal:80", "metadata:80"),
			refused("egress", "net.request", "alias.test:80"),
			refused("egress", "net.query", "internal", "kubernetes.default.svc", "metadata", "metadata.google.internal"),
			raised("cluster-api", "metadata", "name-to-inside", "unknown-host"),
		),
		"DNS-012": trail(refused("egress", "net.query", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.test"), raised("unknown-host")),
	}
})

var metadataTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"MET-001": trail(refused("egress", "net.connect", "169.254.169.254:443", "169.254.169.254:80", "169.254.169.254:8080"), raised("metadata")),
		"MET-002": trail(refused("egress", "net.connect", "169.254.170.23:80", "169.254.170.2:80"), raised("metadata")),
		"MET-005": trail(
			refused("egress", "net.connect", "100.100.100.200:80", "168.63.129.16:80", "169.254.0.23:80", "192.0.0.192:80", "[fd00:ec2::254]:80", "[fd20:ce::254]:80"),
			raised("metadata"),
		),
		"MET-006": trail(
			refused("egress", "net.connect", "0251.0376.0251.0376:80", "025177524776:80", "0xA9FEA9FE:80", "0xa9.0xfe.0xa9.0xfe:80", "0xa9.254.0251.254:80", "169.16689662:80", "169.254.43518:80", "2852039166:80", "http://0251.0376.0251.0376/"),
			refused("egress", "net.query", "0xA9FEA9FE", "0xa9.0xfe.0xa9.0xfe", "0xa9.254.0251.254"),
			raised("odd-host"),
		),
		"MET-006b": trail(
			refused("egress", "net.connect", "0169.0254.0169.0254:80", "169%2e254%2e169%2e254:80", "169.254.0251.254:80", "169.254.169.254%00.allowed.test:80", "169.254.169.254.:80", "169\u3002254\u3002169\u3002254:80", "169\uff0e254\uff0e169\uff0e254:80", "4294967296.test:80", "http://0169.0254.0169.0254/"),
			refused("egress", "net.query", "4294967296.test"),
			raised("unknown-host"),
		),
		"MET-007": trail(
			refused("egress", "net.connect", "0.0.0.0:8080", "0:8080", "11.0.0.1:8080", "127.0.0.1:8080", "127.255.255.254:8080", "[::1]:8080", "[::]:8080", "http://0:8080/", "http://127.0.0.1.:8080/"),
			refused("egress", "net.query", "0x7f000001"),
			raised("odd-host"),
		),
		"MET-008":  trail(refused("egress", "net.connect", "169.254.169.254:80"), raised("metadata")),
		"MET-008b": refused("egress", "net.connect", "[2001:0:1:2:3:4:5601:5601]:80", "[2002:a9fe:a9fe::]:80", "[64:ff9b:1::a9fe:a9fe]:80", "[64:ff9b::a9fe:a9fe]:80", "[::a9fe:a9fe]:80", "[fe80::a9fe:a9fe]:80"),
		"MET-011": trail(
			refused("egress", "net.request", "127.0.0.1.nip.test:8080", "169-254-169-254.nip.test:80", "a9fea9fe.nip.test:80"),
			raised("name-to-inside"),
		),
		"MET-013": trail(
			refused("egress", "net.connect", "169.254.169.254 .allowed.test:80", "169.254.169.254:80", "169.254.169.254\\\\@allowed.test:80", "[::ffff:169.254.169.254%25allowed.test]:80", "allowed.test%40169.254.169.254:80", "allowed.test:80@169.254.169.254", "http://169.254.169.254#allowed.test/", "http://169.254.169.254\\\\@allowed.test/", "http://allowed.test#@169.254.169.254/"),
			raised("metadata", "odd-host", "smuggling"),
		),
		"MET-014": trail(refused("egress", "net.connect", "169.254.169.254:80"), raised("metadata")),
		"MET-015": trail(refused("egress", "net.request", "10.9.8.7:80", "169.254.169.254:80"), raised("metadata")),
		"MET-016": trail(
			refused("egress", "net.request", "n1.inner.test:80", "n10.inner.test:80", "n11.inner.test:80", "n12.inner.test:80", "n13.inner.test:80", "n2.inner.test:80", "n3.inner.test:80", "n4.inner.test:80", "n5.inner.test:80"),
			raised("name-to-inside"),
		),
	}
})

var proxyTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"PXY-001": trail(
			refused("egress", "net.connect", "denied.test\\x00.allowed.test:80", "denied.test\\x00.wild.test:443", "denied.test\\x00.wild.test:80", "denied.test\\x00allowed.test:80"),
			raised("odd-host"),
		),
		"PXY-001b": trail(
			refused("egress", "net.connect", "*.wild.test:80", ".wild.test:80", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.a.wild.test:80", "denied.test#.wild.test:80", "denied.test\\\\.wild.test:80", "denied.test\\t.wild.test:80", "http://*.wild.test/", "http://.wild.test/", "http://dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd.wild.test/"),
			raised("odd-host", "unknown-host"),
		),
		"PXY-003": refused("egress", "net.connect", "0.0.0.0", "1.2.3.4:9", "denied.test:80", "denied.test:9", "proxy"),
		"PXY-004": trail(
			refused("egress", "net.connect", "0x1020304:80", "1.2.3.4:80", "allowed.test", "denied.test:80", "proxy"),
			refused("egress", "net.request", "allowed.test:80"),
			raised("smuggling", "unknown-host"),
		),
		"PXY-005": refused("egress", "net.connect", "allowed.test:80", "allowed.test:80@denied.test:80", "allowed.test@denied.test:80", "denied.test:443", "denied.test:80", "http://denied.test:80/"),
		"PXY-005b": trail(
			refused("egress", "net.connect", "*:80", "016909060:80", "127.0.0.1:3128", "[::ffff:1.2.3.4]:80", "[allowed.test]:22", "allowed.test:", "allowed.test:0x16", "allowed.test:25", "allowed.test:65616"),
			raised("smuggling", "unknown-host"),
		),
		"PXY-006": trail(
			refused("egress", "net.connect", "/", "//denied.test/", "ftp://denied.test/", "http://allowed.test/", "http://allowed.test:22/", "http://allowed.test@denied.test/", "http://denied.test/", "http:/denied.test/"),
			refused("egress", "net.request", "allowed.test:80"),
			raised("smuggling"),
		),
		"PXY-006b": trail(refused("egress", "net.connect", "http://allowed.test/"), refused("egress", "net.request", "allowed.test:80"), raised("fronting", "smuggling")),
		"PXY-006c": trail(refused("egress", "net.request", "allowed.test:80"), raised("smuggling")),
		"PXY-007":  trail(refused("egress", "net.connect", "allowed.test:443"), raised("fronting")),
		"PXY-007b": trail(refused("egress", "net.request", "allowed.test:443"), raised("smuggling")),
		"PXY-007c": did("net.connect", "allowed.test:443"),
		"PXY-008":  trail(refused("egress", "net.connect", "allowed.test:443"), raised("fronting")),
		"PXY-010": trail(
			refused("egress", "net.connect", "http://allowed.test:8082/open", "proxy"),
			refused("egress", "net.request", "allowed.test:8081", "allowed.test:8082"),
			raised("smuggling"),
		),
		"PXY-010b": trail(refused("egress", "net.request", "allowed.test:443"), raised("path-confusion", "smuggling")),
		"PXY-010c": trail(refused("egress", "net.request", "allowed.test:443"), raised("path-confusion", "smuggling")),
		"PXY-011":  did("net.request", "allowed.test:80"),
		"PXY-011b": did("net.request", "allowed.test:8082"),
		"PXY-013":  trail(refused("egress", "net.request", "allowed.test:80"), raised("smuggling")),
		"PXY-015": trail(
			refused("egress", "net.connect", "http://allowed.test/admin#/open/", "proxy"),
			refused("egress", "net.request", "allowed.test:80"),
			raised("path-confusion", "smuggling"),
		),
		"PXY-015b": trail(refused("egress", "net.request", "allowed.test:443"), raised("path-confusion")),
		"PXY-016":  trail(refused("egress", "net.connect", "allowed.test:80"), refused("egress", "net.request", "allowed.test:80"), raised("smuggling")),
		"PXY-017": trail(
			refused("egress", "net.connect", "ALLOWED.test", "allowed.test..:80", "http://allowed.test../"),
			refused("egress", "net.request", "allowed.test:80"),
			raised("smuggling"),
		),
		"PXY-018": trail(
			refused("egress", "net.connect", "a.wild.test.denied.test:443", "a.wildxtest:80", "allowed.test-denied.test:443", "allowed.test.denied.test:80", "allowed_test:443", "allowedxtest:80", "evil-allowed.test:443", "llowed.test:80", "wild.test.denied.test:443"),
			refused("egress", "net.query", "a.wild.test.denied.test", "a.wildxtest", "allowed.tes", "allowed.test-denied.test", "allowed.test.denied.test", "allowed.testing"),
			raised("unknown-host"),
		),
		"PXY-019": trail(
			refused("egress", "net.connect", ".wild.test:80", "http://.wild.test/", "sub.allowed.test:80", "test:80", "wild.test:443", "wild.test:80"),
			refused("egress", "net.query", "sub.allowed.test", "test", "wild.test"),
			raised("unknown-host"),
		),
		"PXY-021": trail(
			refused("egress", "net.connect", "allowed.te\u017ft.denied.test:80", "allowed\\u200b.test:80", "allow\u0435d.test:80", "denied.test\u2100.wild.test:80", "denied.test\u3002wild.test:80", "denied.test\uff0fallowed.test:80", "http://xn--.wild.test/", "proxy", "xn--.wild.test:80"),
			raised("unknown-host"),
		),
		"PXY-022": trail(
			refused("egress", "net.connect", "1.2.3.4:80", "93.184.215.14:80", "allowed.test:22", "allowed.test:443", "allowed.test:80", "denied.test:80"),
			refused("egress", "net.query", "allowed.test", "denied.test"),
			raised("unknown-host"),
		),
		"PXY-025": trail(
			refused("egress", "net.connect", "allowed.test:80", "denied.test:80"),
			refused("egress", "net.query", "allowed.test", "denied.test"),
			raised("unknown-host"),
		),
		"PXY-221":  did("net.request", "allowed.test:443"),
		"PXY-025b": did("net.request", "allowed.test:443"),
		"PXY-026": trail(
			refused("egress", "net.request", "a.wild.test:443", "a.wild.test:80", "allowed.test:80"),
			refused("egress", "credential.alert", "a.wild.test:443", "a.wild.test:80", "allowed.test:80"),
			raised("placeholder-misuse"),
		),
		"PXY-026b": trail(
			refused("egress", "net.request", "allowed.test:443"),
			refused("egress", "credential.alert", "allowed.test:443"),
			raised("placeholder-misuse", "smuggling"),
		),
		"PXY-026c": did("credential.use", "allowed.test:443"),
		"PXY-026d": did("credential.use", "allowed.test:443"),
		"PXY-026f": trail(did("credential.use", "allowed.test:443"), did("net.request", "allowed.test:80")),
		"PXY-026e": trail(
			refused("egress", "net.request", "a.wild.test:443", "allowed.test:443"),
			refused("egress", "credential.alert", "a.wild.test:443", "allowed.test:443"),
			raised("placeholder-misuse"),
		),
		"PXY-028": trail(refused("egress", "net.request", "allowed.test:80"), raised("smuggling")),
		"PXY-030": refused("egress", "net.request", "allowed.test:80"),
		"PXY-031": refused("egress", "net.request", "allowed.test:443", "b.allowed.test:443"),
	}
})

var channelTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"EXF-001":  trail(refused("egress", "net.request", "allowed.test:80"), raised("path-confusion")),
		"EXF-001b": refused("egress", "net.request", "allowed.test:443"),
		"EXF-002":  refused("egress", "net.request", "allowed.test:80"),
		"EXF-004":  nothing(output),
		"EXF-005":  did("file.write", "W/x.json"),
		"EXF-006":  did("net.request", "allowed.test:80"),
		"EXF-007": trail(
			refused("egress", "honey.sent", "allowed.test:22", "allowed.test:80", "allowed.test:443"),
			raised("honeytoken-read", "honeytoken-sent"),
		),
	}
})
