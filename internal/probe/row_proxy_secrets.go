//go:build linux

package probe

import (
	"fmt"
	"strings"
)

// A secret for one host, and the hosts that it is not for.
var (
	lentReach = []Reach{
		{Host: "allowed.test", Ports: []int{443}, Kind: "tls", Inspect: true}, {Host: "allowed.test", Ports: []int{80}, Kind: "http"},
		{Host: "*.wild.test", Ports: []int{443}, Kind: "tls", Inspect: true}, {Host: "*.wild.test", Ports: []int{80}, Kind: "http"},
	}
	lentSecret = Secret{Env: "PROBE_SECRET", Host: "allowed.test", Header: "Authorization: Bearer {}"}
)

func proxySecrets() []Row {
	ask := func(host, path, headers string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + headers + "Connection: close\r\n\r\n"
	}
	bearer, elsewhere := "Authorization: Bearer {}\r\n", []string{"direct allowed.test:80", "direct a.wild.test:443", "connect a.wild.test:443", "direct a.wild.test:80"}
	var stray []string
	for _, to := range elsewhere {
		host, _, _ := strings.Cut(strings.Fields(to)[1], ":")
		stray = append(stray, say(to, ask(host, "/leak", bearer)), say(to, ask(host, "/leak?{}", "")), say(to, ask(host, "/leak", "Cookie: a={}\r\n")), say(to, ask(host, "/leak", "Authorization: Basic {basic}\r\n")),
			say(to, "POST /leak HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: {length}\r\n\r\n{}"))
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
			Oracle: arrived("/leak"),
			Args:   []string{"env=" + lentSecret.Env, "ok=" + say("direct allowed.test:443", ask("allowed.test", "/right", bearer)), "say=" + rowsOf(stray...)}},
		{ID: "PXY-026b", Title: "a secret is put in a place of a request where it is not for",
			Refs: []string{"RFC 6750, 2"}, Action: "net-secret",
			Options: Options{Reach: lentReach, Secrets: []Secret{lentSecret}}, Setup: lend,
			Args: []string{"env=" + lentSecret.Env, "ok=" + say("direct allowed.test:443", ask("allowed.test", "/right", bearer)), "say=" + rowsOf(misplaced...)}},
		{ID: "PXY-026c", Title: "a secret is learnt, from an echo of the server or from what is inside",
			Refs: []string{"srt credential sentinel"}, Action: "net-secret",
			Options: Options{Reach: lentReach, Secrets: []Secret{lentSecret}}, Setup: lend,
			Args: []string{"env=" + lentSecret.Env, "look=1", "ok=" + say("direct allowed.test:443", ask("allowed.test", "/right", bearer)),
				"say=" + rowsOf(say("direct allowed.test:443", ask("allowed.test", "/echo", bearer)), say("connect allowed.test:443", ask("allowed.test", "/echo", bearer)))}},
	}
}

// lend gives the launcher a secret, and says where it may arrive.
func lend(w *World) error {
	n, err := w.internet()
	if err != nil {
		return err
	}
	value := w.Token("the secret that is lent")
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
		for _, v := range w.net.requests(path) {
			if v.method == "POST" && v.body == "" {
				continue // it was stopped when the body came
			}
			out = append(out, fmt.Sprintf("%s:%d was sent what stands for a secret of another host: %s %s", v.name, v.to.Port(), v.method, v.target))
		}
		return out
	}
}
