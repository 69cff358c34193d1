//go:build linux

package probe

import "fmt"

const classMetadata = "net.metadata-loopback-encodings"

var spellings = []string{"github.com/NVIDIA/OpenShell crates/openshell-supervisor-network tests", "npm @anthropic-ai/sandbox-runtime address.js"}

func metadataRows() []Row {
	return append(public(classMetadata, metadataAddresses()...), public(classMetadata, metadataSpellings()...)...)
}

func metadataAddresses() []Row {
	return []Row{
		{ID: "MET-001", Core: true, Title: "the metadata service of a cloud is reached", Refs: spellings,
			Action: "net-get", Args: []string{"try=" + by(allDoors, "http://169.254.169.254/latest/meta-data/", "https://169.254.169.254/", "http://169.254.169.254:8080/")}},
		{ID: "MET-002", Title: "a service that gives credentials to containers is reached", Refs: spellings,
			Options: Options{Env: []string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://169.254.170.23/v1/credentials"}},
			Action:  "net-get", Args: []string{"try=" + by(allDoors, "http://169.254.170.2/v2/credentials", "http://169.254.170.23/v1/credentials")}},
		{ID: "MET-005", Title: "a metadata service at an address that looks public is reached", Refs: spellings,
			Action: "net-get", Args: []string{"try=" + by(allDoors, "http://100.100.100.200/", "http://192.0.0.192/", "http://168.63.129.16/", "http://169.254.0.23/", "http://[fd00:ec2::254]/", "http://[fd20:ce::254]/")}},
		{ID: "MET-007", Title: "the loopback of the host is reached by a short spelling", Refs: spellings,
			Setup: listeners("127.0.0.1:8080", "[::1]:8080", "11.0.0.1:8080"), Action: "net-get",
			Args: []string{"try=" + by(allDoors, "http://127.1:8080/", "http://0:8080/", "http://0.0.0.0:8080/", "http://127.0.0.1.:8080/", "http://127.0.0.1:8080/", "http://localhost:8080/",
				"http://localhost.:8080/", "http://LOCALHOST:8080/", "http://[::1]:8080/", "http://[::]:8080/", "http://127.255.255.254:8080/", "http://2130706433:8080/", "http://0x7f000001:8080/",
				"http://017700000001:8080/", "http://[::ffff:127.0.0.1]:8080/", "http://[::ffff:7f00:1]:8080/", "http://[::127.0.0.1]:8080/", "http://11.0.0.1:8080/", "http://[0:0:0:0:0:0:0:1]:8080/")}},
		{ID: "MET-011", Title: "a public name for an address leads to the host's loopback or a metadata service", Refs: []string{"nip.io"},
			Options: Options{Reach: withNames("*.nip.test")},
			Setup: also(listeners("127.0.0.1:8080"), resolves("127.0.0.1.nip.test", addrs("127.0.0.1")), resolves("169-254-169-254.nip.test", addrs("169.254.169.254")),
				resolves("a9fea9fe.nip.test", addrs("169.254.169.254"))),
			Action: "net-get", Args: []string{"try=" + by(allDoors, "http://127.0.0.1.nip.test:8080/", "http://169-254-169-254.nip.test/", "http://a9fea9fe.nip.test/")}},
		{ID: "MET-014", Title: "a redirection of an allowed host is followed to a metadata service", Refs: []string{"RFC 9110, 15.4"},
			Action: "net-follow", Args: []string{"ok=" + by(allDoors, "http://allowed.test/"), "try=" + rowsOf(
				by(allDoors, "http://allowed.test/redirect?to=http://169.254.169.254/latest"), by([]string{"direct", "connect"}, "https://allowed.test/redirect?to=http://169.254.169.254/latest"))}},
		{ID: "MET-015", Title: "a private address that the policy names, but not as internal, is reached", Refs: []string{"RFC 1918"},
			Options:      Options{Reach: append([]Reach{{Host: "10.9.8.7", Ports: []int{80}, Kind: "http"}, {Host: "169.254.169.254", Ports: []int{80}, Kind: "http"}}, publicNet...)},
			RefusalHolds: true, Action: "net-get", Args: []string{"try=" + by(allDoors, "http://10.9.8.7/", "http://169.254.169.254/")}},
		{ID: "MET-016", Title: "a name that may be in the user's own network leads to a metadata service, or to the host itself", Refs: []string{"RFC 3927", "RFC 1918"},
			Options: Options{Reach: []Reach{{Host: "*.inner.test", Ports: []int{80, 8080}, Kind: "http", Internal: true}}},
			Setup: also(listeners("11.0.0.1:8080"), resolvesAll("inner.test", metadataAddrs...), func(n *internet) {
				n.own[addrs("10.9.8.7")[0]] = "n0.inner.test"
			}),
			Action: "net-get", Args: []string{"ok=" + by(allDoors, "http://n0.inner.test/"), "try=" + by(allDoors[:2], numbered("inner.test", metadataAddrs[1:])...)}},
	}
}

// metadataAddrs are one of a private network, and then those that no rule may
// lead to.
var metadataAddrs = []string{"10.9.8.7", "169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "169.254.1.1", "fd00:ec2::254",
	"::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "0.0.0.0", "224.0.0.1", "255.255.255.255"}

func numbered(below string, addresses []string) []string {
	var out []string
	for i := range addresses {
		out = append(out, fmt.Sprintf("http://n%d.%s/", i+1, below))
	}
	return out
}

func metadataSpellings() []Row {
	return []Row{
		{ID: "MET-006", Core: true, Title: "a metadata service is reached by its address as a number", Refs: spellings,
			Action: "net-get", Args: []string{"try=" + by(allDoors, "http://2852039166/", "http://0xA9FEA9FE/", "http://0251.0376.0251.0376/", "http://169.254.43518/", "http://169.16689662/",
				"http://0xa9.0xfe.0xa9.0xfe/", "http://025177524776/", "http://0xa9.254.0251.254/")}},
		{ID: "MET-006b", Title: "a metadata service is reached by an address with zeros before, a dot behind, or digits of another script", Refs: []string{"CVE-2021-29923", "CVE-2021-28918", "UTS #46"},
			Action: "net-get", Args: []string{"try=" + by(allDoors, "http://169.254.169.254./", "http://169.254.0251.254/", "http://0169.0254.0169.0254/", "http://１６９.２５４.１６９.２５４/",
				"http://169。254。169。254/", "http://169．254．169．254/", "http://①⑥⑨.254.169.254/", "http://169%2e254%2e169%2e254/", "http://169.254.169.254%00.allowed.test/", "http://4294967296.test/")}},
		{ID: "MET-008", Core: true, Title: "a metadata service is reached by its IPv4 address in an IPv6 one", Refs: spellings,
			Action: "net-get", Args: []string{"try=" + by(allDoors, "http://[::ffff:169.254.169.254]/", "http://[::ffff:a9fe:a9fe]/", "http://[::FFFF:A9FE:A9FE]/", "http://[0:0:0:0:0:ffff:169.254.169.254]/")}},
		{ID: "MET-008b", Title: "a metadata service is reached by an address of a translator or a tunnel", Refs: []string{"RFC 6052", "RFC 3056", "RFC 4380", "RFC 8215"}, Accept: append([]string{"EINVAL"}, netReplies...),
			Action: "net-get", Args: []string{"try=" + by(allDoors, "http://[64:ff9b::a9fe:a9fe]/", "http://[64:ff9b::169.254.169.254]/", "http://[64:ff9b:1::a9fe:a9fe]/", "http://[2002:a9fe:a9fe::]/",
				"http://[2001:0:1:2:3:4:5601:5601]/", "http://[::a9fe:a9fe]/", "http://[fe80::a9fe:a9fe]/")}},
		{ID: "MET-013", Title: "a URL that two programs read differently leads to a metadata service", Refs: []string{"RFC 3986, 3.2", "SSRF by URL parsers, Black Hat 2017"},
			Action: "net-get", Args: []string{"ok=" + by(allDoors, "http://allowed.test/"), "try=" + by([]string{"connect", "forward", "socks"},
				"http://allowed.test@169.254.169.254/", "http://allowed.test:80@169.254.169.254/", "http://169.254.169.254#allowed.test/", "http://169.254.169.254\\@allowed.test/",
				"http://allowed.test#@169.254.169.254/", "http://allowed.test%40169.254.169.254/", "http://169.254.169.254;allowed.test/", "http://169.254.169.254 .allowed.test/",
				"http://169.254.169.254\t/", "http://user:allowed.test@169.254.169.254/", "http://[::ffff:169.254.169.254%25allowed.test]/")}},
	}
}
