//go:build linux

package probe

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// A secret for one host, and the hosts that it is not for.
var (
	lentReach = []Reach{
		{Host: "allowed.test", Ports: []int{443}, Kind: "tls", Inspect: true}, {Host: "allowed.test", Ports: []int{80}, Kind: "http"},
		{Host: "*.wild.test", Ports: []int{443}, Kind: "tls", Inspect: true}, {Host: "*.wild.test", Ports: []int{80}, Kind: "http"},
	}
	lentSecret = Secret{Env: "PROBE_SECRET", Host: "allowed.test", Header: "Authorization: Bearer {}"}
)

const lentName = "the secret that is lent"

func proxySecrets() []Row {
	ask := func(host, path, headers string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + headers + "Connection: close\r\n\r\n"
	}
	bearer, elsewhere := "Authorization: Bearer {}\r\n", []string{"direct allowed.test:80", "direct a.wild.test:443", "connect a.wild.test:443", "direct a.wild.test:80"}
	var stray []string
	for _, to := range elsewhere {
		host, _, _ := strings.Cut(strings.Fields(to)[1], ":")
		stray = append(stray, say(to, ask(host, "/leak", bearer)), say(to, ask(host, "/leak?{}", "")), say(to, ask(host, "/leak", "Cookie: a={}\r\n")), say(to, ask(host, "/leak", "Authorization: Basic {basic}\r\n")),
			say(to, "POST /leak HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: {length}\r\n\r\n{}"),
			say(to, "GET /leak HTTP/1.1\r\nHost: "+host+"\r\nAuthorization: Bearer {half1}", "{half2}\r\nConnection: close\r\n\r\n"), say(to, ask(host, "/leak?a={escaped}", "")), say(to, ask(host, "/", "")[:len(ask(host, "/", ""))-2]+"Referer: {}\r\n\r\n"),
			say(to, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"+ask(host, "/leak", bearer)), say(to, ask(host, "/leak", "X-{}: y\r\n")),
			say(to, "POST /parts HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: {length}\r\n\r\n{half1}", "{half2}"), say(to, "POST /parts HTTP/1.1\r\nHost: "+host+"\r\nTransfer-Encoding: chunked\r\n\r\n{size1}\r\n{half1}\r\n", "{size2}\r\n{half2}\r\n0\r\n\r\n"))
	}
	misplaced := []string{
		say("direct allowed.test:443", ask("allowed.test", "/misplaced?{}", "")), say("direct allowed.test:443", ask("allowed.test", "/misplaced/{}/x", "")),
		say("direct allowed.test:443", ask("allowed.test", "/misplaced", "X-Other: {}\r\n")), say("direct allowed.test:443", ask("allowed.test", "/misplaced", "Cookie: {}\r\n")),
		say("direct allowed.test:443", "POST /misplaced HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{}"),
		say("direct allowed.test:443", ask("allowed.test", "/misplaced", "Authorization: Bearer x\r\nAuthorization: Bearer {}\r\n")),
		say("direct allowed.test:443", ask("allowed.test", "/misplaced", "Authorization: Bearer {} {}\r\n")),
		say("direct allowed.test:443", ask("{}.wild.test", "/misplaced", "")),
	}
	return []Row{
		{ID: "PXY-026", Title: "a secret goes to a host that it is not for",
			Refs: []string{"agentsh TestLeakGuardHook", "srt credential sentinel"}, Action: "net-secret",
			Options: Options{Reach: lentReach, Secrets: []Secret{lentSecret}, Env: nil}, Setup: lend,
			Oracle: arrived("/leak"), Proof: true,
			Args: []string{"env=" + lentSecret.Env, "ok=" + say("direct allowed.test:443", ask("allowed.test", "/right", bearer)), "say=" + rowsOf(stray...)}},
		{ID: "PXY-026b", Title: "a secret is put in a place of a request where it is not for",
			Refs: []string{"RFC 6750, 2"}, Action: "net-secret",
			Options: Options{Reach: lentReach, Secrets: []Secret{lentSecret}}, Setup: lend,
			Args: []string{"env=" + lentSecret.Env, "ok=" + say("direct allowed.test:443", ask("allowed.test", "/right", bearer)), "say=" + rowsOf(misplaced...)}},
		{ID: "PXY-025b", Title: "another run spends the stand-in of this one's secret",
			Refs: []string{"srt socks-unauthenticated-probe.test.ts"}, Action: "net-secret", Setup: lend,
			Options: Options{Reach: lentReach, Secrets: []Secret{lentSecret}}, Drive: borrowers, Oracle: borrowed, Proof: true},
	}
}

// proxyEchoes are ways to learn what a stand-in stands for.
func proxyEchoes() []Row {
	ask := func(path, headers string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: allowed.test\r\n" + headers + "Connection: close\r\n\r\n"
	}
	const bearer = "Authorization: Bearer {}\r\n"
	return []Row{
		{ID: "PXY-026c", Title: "a secret is learnt, from an echo of the server or from what is inside",
			Refs: []string{"srt credential sentinel"}, Action: "net-secret",
			Options: Options{Reach: lentReach, Secrets: []Secret{lentSecret}}, Setup: lend,
			Args: []string{"env=" + lentSecret.Env, "look=1", "ok=" + say("direct allowed.test:443", ask("/right", bearer)),
				"say=" + rowsOf(say("direct allowed.test:443", ask("/echo", bearer)), say("connect allowed.test:443", ask("/echo", bearer)))}},
		{ID: "PXY-026d", Title: "a secret is learnt from an answer that hides it",
			Refs: []string{"RFC 9110, 6.5", "RFC 8297"}, Action: "net-secret",
			Options: Options{Reach: lentReach, Secrets: []Secret{lentSecret}}, Setup: lend,
			Args: []string{"env=" + lentSecret.Env, "ok=" + say("direct allowed.test:443", ask("/right", bearer)), "say=" + rowsOf(
				say("direct allowed.test:443", ask("/echo/location", bearer)), say("direct allowed.test:443", ask("/echo/early", bearer)), say("direct allowed.test:443", ask("/echo/trailer", bearer)),
				say("direct allowed.test:443", ask("/echo/status", bearer)), say("direct allowed.test:443", ask("/echo/parts", bearer)), say("direct allowed.test:443", ask("/echo/gzip", bearer+"Accept-Encoding: gzip\r\n")))}},
		{ID: "PXY-026f", Title: "a secret is learnt from another port of the host that it went to",
			Refs: []string{"RFC 6454, 4"}, Action: "net-secret",
			Options: Options{Reach: lentReach, Secrets: []Secret{lentSecret}}, Setup: lend,
			// What is said is said at the same time: the telling comes first.
			Args: []string{"env=" + lentSecret.Env, "ok=" + say("direct allowed.test:443", ask("/tell", bearer)),
				"say=" + say("direct allowed.test:80", ask("/heard", ""))}},
		{ID: "PXY-026e", Title: "a secret goes to a host or a place that it is not for, by HTTP/2",
			Refs: []string{"RFC 9113, 8.1"}, Action: "net-h2",
			Options: Options{Reach: lentReach, Secrets: []Secret{lentSecret}}, Setup: lend, Oracle: arrived("/leak"), Proof: true,
			Args: []string{"env=" + lentSecret.Env, "ok=" + h2("allowed.test", "/right", "authorization=Bearer {}"), "say=" + rowsOf(
				h2("a.wild.test", "/leak", "authorization=Bearer {}"), h2("a.wild.test", "/leak?{}"), h2("a.wild.test", "/leak", "cookie=a={}"), h2("a.wild.test", "/leak", "=DATA {}", "=TRAILER authorization=Bearer {}"),
				h2("a.wild.test", "/leak", "cookie={half1}", "cookie={half2}", "x={}"), h2("allowed.test", "/misplaced", "x={}"), h2("allowed.test", "/misplaced", "authorization=Bearer {}", "authorization=Bearer {}"),
				h2("allowed.test", "/misplaced", "=DATA a", "=TRAILER authorization=Bearer {}"), h2("allowed.test", "/misplaced/{}"), h2("allowed.test", "/echo", "authorization=Bearer {}"), h2("allowed.test", "/echo/trailer", "authorization=Bearer {}"))}},
	}
}

// h2 is a line of net-h2.
func h2(host, path string, fields ...string) string {
	return say("direct "+host+":443", append([]string{":method=POST", ":scheme=https", ":authority=" + host, ":path=" + path}, fields...)...)
}

// lentLength is how long a stand-in is: as long as the secret.
func (w *World) lentLength() int { return len(w.Token(lentName)) }

// borrowers are two runs with a secret each, the second of which spends the
// stand-in of the first.
func borrowers(s *Session) {
	there, until := filepath.Join(s.World.W, "there"), filepath.Join(s.World.W, "until")
	wait := s.Start(Command{Action: "net-wait", Args: []string{"ok=" + by(allDoors[:1], "https://allowed.test/first"), "there=" + there, "until=" + until, "env=" + lentSecret.Env}, Options: s.Row.Options})
	for end := time.Now().Add(20 * time.Second); !exists(there) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	s.World.Holds(there) // without a sandbox the secret stands for itself
	ask := "GET /borrowed HTTP/1.1\r\nHost: allowed.test\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n"
	s.Run(Command{Action: "net-secret", Args: []string{"from=" + there, "ok=" + say("direct allowed.test:443", "GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n"), "say=" + say("direct allowed.test:443", ask)}, Options: s.Row.Options})
	if err := s.World.File("W/until", ""); err != nil {
		s.Fail(err)
	}
	wait()
}

// borrowed are requests with a secret that another run's stand-in was put in.
func borrowed(w *World, _ Observation) []string {
	for _, v := range w.net.requests("/borrowed") {
		if strings.Contains(v.head, w.Token(lentName)) {
			return []string{"the stand-in of another run was taken for the secret"}
		}
	}
	return nil
}

// lend gives the launcher a secret, and says where it may arrive.
func lend(w *World) error {
	n, err := w.internet()
	if err != nil {
		return err
	}
	value := w.Token(lentName)
	w.Env = append(w.Env, lentSecret.Env+"="+value)
	right := "Authorization: Bearer " + value + "\r\n"
	n.lent = map[string]func(visit) bool{value: func(v visit) bool {
		return v.name == lentSecret.Host && v.to.Port() == 443 && strings.Count(v.head+v.target+v.body, value) == 1 && strings.Contains(v.head, right)
	}}
	return nil
}

// arrived are requests for a path that nobody may be asked for, with what they
// were made to carry.
func arrived(path string) func(*World, Observation) []string {
	return func(w *World, _ Observation) []string {
		var out []string
		for _, v := range w.net.requests("/parts") {
			if len(v.body) > 0 && len(v.body) == w.lentLength() {
				out = append(out, fmt.Sprintf("%s:%d was sent, in parts, what stands for a secret of another host", v.name, v.to.Port()))
			}
		}
		for _, v := range w.net.requests(path) {
			if v.method == "POST" && v.body == "" {
				continue // it was stopped when the body came
			}
			out = append(out, fmt.Sprintf("%s:%d got a request that it should not: %s %s", v.name, v.to.Port(), v.method, v.target))
		}
		return out
	}
}
