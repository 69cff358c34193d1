package realtest

import "holdfast.dev/holdfast/internal/testenv"

// download is a typical download by some program.
type download struct {
	name   string
	needs  []testenv.Feature
	host   string // the only destination that the policy allows
	client bool   // it runs the client of this package
	same   bool   // its output is the same in each way
	plain  bool   // no TLS, so nothing can be terminated
	files  map[string]string
	// own are variables that give the network's authority to a program that does
	// not read the system's list. If the boundary terminates TLS, only it may set
	// the trusted authorities, so they are not set then.
	own     []string
	curious bool   // it also contacts servers of its maker
	prepare string // run before, without holdfast, if own is set
	script  string // {way} becomes the name of the way, {proxy} and {socks} the flags of curl for the explicit proxy
	want    []string
}

var downloads = []download{
	{
		name: "curl", host: filesHost, needs: []testenv.Feature{testenv.Curl},
		script: `
			curl -sS --http1.1 https://files.example.org/hello
			curl -sS --http2 https://files.example.org/hello
			curl -sS -L https://files.example.org/old -o /dev/null -w 'moved to %{url_effective} %{http_code}\n'
			curl -sS https://files.example.org/bytes/3000000 | wc -c
			head -c 2000000 /dev/zero | curl -sS -T - https://files.example.org/count
			head -c 2000000 /dev/zero | curl -sS --http1.1 -X POST -H 'Expect: 100-continue' --data-binary @- https://files.example.org/count
			curl -sS -r 2-4 https://files.example.org/ranges; echo
			curl -sS -I https://files.example.org/hello | tr -d '\r' | sed -n 1p
			curl -sS -0 --no-alpn https://files.example.org/hello
			curl -sS --compressed https://files.example.org/packed
			curl -sS -v https://files.example.org/hints 2>&1 | tr -d '\r' | sed -n 's/^< HTTP/hints/p'
			curl -sS --parallel $(seq -f 'https://files.example.org/bytes/1000?%g' 20) | wc -c
			curl -sS -o /dev/null -w 'status %{http_code}\n' https://files.example.org/nothing`,
		want: []string{
			"hello by HTTP/1.1", "hello by HTTP/2.0", "moved to https://files.example.org/hello 200", "3000000\n",
			"PUT of 2000000 bytes <nil>", "POST of 2000000 bytes <nil>", "\n234\n", "HTTP/2 200",
			"\npacked\n", "hints/2 204 \n", "20000\n", "status 404",
		},
	},
	{
		name: "odd requests", host: filesHost, needs: []testenv.Feature{testenv.Curl}, same: true,
		script: oddRequests("https", "1.1 2"), want: []string{"without a length\n"},
	},
	{
		name: "odd requests in the clear", host: filesHost, plain: true, needs: []testenv.Feature{testenv.Curl}, same: true,
		script: oddRequests("http", "1.1"), want: []string{"without a length\n"},
	},
	{
		name: "wget", host: filesHost, needs: []testenv.Feature{testenv.Wget},
		script: `
			wget -q -O - https://files.example.org/old
			wget -q https://files.example.org/bytes/3000000
			wc -c < 3000000
			head -c 5 3000000 > part; printf 01234 > ranges; wget -q -c https://files.example.org/ranges; cat ranges`,
		want: []string{"hello by HTTP/1.1", "3000000\n", "0123456789"},
	},
	{
		name: "node", host: filesHost, needs: []testenv.Feature{testenv.Node}, own: []string{nodeBundle},
		files: map[string]string{"client.mjs": `
import https from 'node:https';
import http2 from 'node:http2';
const text = await (await fetch('https://files.example.org/old')).text();
console.log('fetch', text.trim());
const posted = await fetch('https://files.example.org/count', { method: 'POST', body: 'x'.repeat(1000000) });
console.log('fetch', (await posted.text()).trim());
https.get('https://files.example.org/hello', { agent: new https.Agent({ keepAlive: true, maxSockets: 1 }) }, answer => {
  answer.setEncoding('utf8').on('data', part => console.log('https', part.trim())).on('end', () => {
    const session = http2.connect('https://files.example.org');
    session.request({ ':path': '/hello' }).setEncoding('utf8').on('data', part => console.log('http2', part.trim())).on('end', () => session.close());
  });
});
`},
		script: `node client.mjs`,
		want:   []string{"fetch hello by HTTP/1.1", "fetch POST of 1000000 bytes <nil>", "https hello by HTTP/1.1", "http2 hello by HTTP/2.0"},
	},
	{
		name: "python", host: filesHost, needs: []testenv.Feature{testenv.Python, testenv.Pip},
		files: map[string]string{"client.py": `import asyncio, ssl, urllib.request
print("urllib", urllib.request.urlopen("https://files.example.org/old").read().decode().strip())
asked = urllib.request.Request("https://files.example.org/count", data=b"x" * 1000000, method="PUT")
print("urllib", urllib.request.urlopen(asked).read().decode().strip())
from pip._vendor import requests
with requests.Session() as s:
    for _ in range(3):
        print("requests", s.get("https://files.example.org/hello").text.strip())
async def talk():
    reader, writer = await asyncio.open_connection("files.example.org", 443, ssl=ssl.create_default_context())
    writer.write(b"GET /hello HTTP/1.1\r\nHost: files.example.org\r\nConnection: close\r\n\r\n")
    print("asyncio", (await reader.read()).decode().split("\r\n\r\n")[1].strip())
    writer.close()
asyncio.run(talk())
`},
		script: `python3 client.py`,
		want:   []string{"urllib hello by HTTP/1.1", "urllib PUT of 1000000 bytes <nil>", "requests hello by HTTP/1.1", "asyncio hello by HTTP/1.1"},
	},
	{
		name: "java", host: filesHost, needs: []testenv.Feature{testenv.JDK}, own: []string{javaBundle},
		files: map[string]string{"Client.java": `
import java.net.*;
import java.net.http.*;
import javax.net.ssl.HttpsURLConnection;

class Client {
    public static void main(String[] args) throws Exception {
        var c = (HttpsURLConnection) new URL("https://files.example.org/old").openConnection();
        System.out.print("HttpsURLConnection " + new String(c.getInputStream().readAllBytes()));
        var client = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NORMAL).build();
        var asked = HttpRequest.newBuilder(URI.create("https://files.example.org/hello")).build();
        System.out.print("HttpClient " + client.send(asked, HttpResponse.BodyHandlers.ofString()).body());
    }
}
`},
		prepare: `keytool -importcert -noprompt -alias here -keystore authorities -storepass changeit -file authority.pem 2>&1`,
		script:  `javac Client.java; java Client`,
		want:    []string{"HttpsURLConnection hello by HTTP/1.1", "HttpClient hello by HTTP/2.0"},
	},
	{
		// It only uses its own list of authorities: the flag makes it accept both
		// the network's authority and the run's.
		name: "chromium", host: filesHost, curious: true, needs: []testenv.Feature{testenv.Chromium},
		script: `
			chromium --headless --no-sandbox --disable-gpu --ignore-certificate-errors --disable-background-networking --disable-component-update \
				--disable-features=OptimizationHints,MediaRouter,Translate --no-first-run --timeout=60000 --dump-dom 'https://files.example.org/page?{way}' 2>chromium.log`,
		want: []string{"hello by HTTP/2.0, and FRAME"},
	},
	{
		name: "npm", host: registryHost, needs: []testenv.Feature{testenv.Node, testenv.NPM}, own: []string{nodeBundle},
		files: map[string]string{
			"package.json": `{"name":"app","version":"1.0.0","dependencies":{"leftover":"1.0.0"}}`,
			".npmrc":       "registry=https://registry.example.org/\nfetch-retries=0\naudit=false\nfund=false\nupdate-notifier=false\n",
		},
		script: `npm install; node -p 'require("leftover")'`,
		want:   []string{"added 1 package", "from the package"},
	},
	{
		name: "pip", host: indexHost, needs: []testenv.Feature{testenv.Python, testenv.Pip},
		script: `
			python3 -m pip install -q --retries 0 --disable-pip-version-check --no-cache-dir --index-url https://index.example.org/simple/ --target packages leftover
			PYTHONPATH=packages python3 -c 'import leftover; print(leftover.word)'`,
		want: []string{"from the wheel"},
	},
	{
		name: "go", host: modulesHost, needs: []testenv.Feature{testenv.Go},
		files: map[string]string{
			"go.mod":  "module example.org/app\n\ngo 1.21\n\nrequire example.org/leftover v1.2.3\n",
			"main.go": "package main\n\nimport \"example.org/leftover\"\n\nfunc main() { println(leftover.Word) }\n",
		},
		script: `
			export GOPROXY=https://modules.example.org GONOSUMDB='*' GOFLAGS='-mod=mod -modcacherw'
			go mod download
			cat go.sum
			cat "$(go env GOMODCACHE)/example.org/leftover@v1.2.3/leftover.go"`,
		want: []string{"example.org/leftover v1.2.3/go.mod h1:", "from the module"},
	},
	{
		name: "cargo", host: cratesHost, needs: []testenv.Feature{testenv.Cargo},
		files: map[string]string{
			"Cargo.toml":  "[package]\nname = \"app\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n[dependencies]\nleftover = \"1\"\n",
			"src/main.rs": "fn main() { println!(\"{}\", leftover::WORD) }\n",
		},
		script: `
			export CARGO_NET_RETRY=0
			cargo --config 'source.crates-io.replace-with="here"' --config 'source.here.registry="sparse+https://crates.example.org/index/"' fetch
			grep -A1 'name = "leftover"' Cargo.lock
			find "${CARGO_HOME:-$HOME/.cargo}" -name '*.crate'`,
		want: []string{`version = "1.0.0"`, "leftover-1.0.0.crate"},
	},
	{
		name: "apt", host: debianHost, needs: []testenv.Feature{testenv.Apt},
		files: map[string]string{
			"sources": "deb [trusted=yes] https://debian.example.org/debian stable main\n",
			"apt.conf": `Dir "HERE"; Dir::Etc "."; Dir::Etc::sourcelist "sources"; Dir::Etc::sourceparts "none"; Dir::Etc::trustedparts "none";
Dir::State "state"; Dir::State::status "HERE/status"; Dir::Cache "cache"; Dir::Log "log"; Dir::Etc::parts "none"; Dir::Etc::main "none"; Dir::Etc::preferencesparts "none";
Acquire::Retries "0"; Acquire::Languages "none"; APT::Sandbox::User ""; Debug::NoLocking "true";
`,
			"status": "", "state/lists/partial/.keep": "", "cache/archives/partial/.keep": "",
		},
		script: `
			sed -i "s|HERE|$PWD|g" apt.conf
			mkdir none
			export APT_CONFIG=$PWD/apt.conf
			apt-get -q update
			apt-get -q download leftover
			wc -c leftover_1.0_all.deb`,
		want: []string{"Get:1 https://debian.example.org/debian stable", "12000 leftover_1.0_all.deb"},
	},
	{
		name: "plain http", host: filesHost + ":80", plain: true, needs: []testenv.Feature{testenv.Curl, testenv.Wget},
		script: `
			curl -sS -L http://files.example.org/old
			wget -q -O - http://files.example.org/bytes/100000 | wc -c
			head -c 100000 /dev/zero | curl -sS -T - -H 'Transfer-Encoding: chunked' http://files.example.org/count
			curl -sS --http2 http://files.example.org/hello
			curl -sS -0 http://files.example.org/ranges
			curl -sS {socks} http://files.example.org/hello
			curl -sS {proxy} http://files.example.org/hello http://files.example.org/bytes/5
			head -c 2000000 /dev/zero | curl -sS {proxy} -T - http://files.example.org/count`,
		want: []string{
			"hello by HTTP/1.1\n100000\nPUT of 100000 bytes <nil>\n",
			"\nhello by HTTP/1.1\n0123456789\nhello by HTTP/1.1\nhello by HTTP/1.1\nxxxxxPUT of 2000000 bytes <nil>\n",
		},
	},
	{
		name: "curl by proxy", host: filesHost, needs: []testenv.Feature{testenv.Curl},
		script: `
			curl -sS {proxy} https://files.example.org/hello
			curl -sS {socks} --http1.1 https://files.example.org/hello
			head -c 2000000 /dev/zero | curl -sS {proxy} -T - https://files.example.org/count`,
		want: []string{"hello by HTTP/2.0\nhello by HTTP/1.1\nPUT of 2000000 bytes <nil>\n"},
	},
	{
		name: "a port of its own", host: filesHost + ":8080", plain: true, needs: []testenv.Feature{testenv.Curl},
		script: `curl -sS http://files.example.org:8080/hello; curl -sS --http2-prior-knowledge http://files.example.org:8080/hello`,
		want:   []string{"hello by HTTP/1.1\nhello by HTTP/2.0\n"},
	},
	{
		name: "a port of its own for http", host: filesHost + ":8080/http", plain: true, needs: []testenv.Feature{testenv.Curl},
		script: `curl -sS -L http://files.example.org:8080/old; curl -sS {proxy} http://files.example.org:8080/hello`,
		want:   []string{"hello by HTTP/1.1\nhello by HTTP/1.1\n"},
	},
	{
		name: "a port of its own for tls", host: filesHost + ":8443/tls", plain: true, needs: []testenv.Feature{testenv.Curl},
		script: `curl -sS https://files.example.org:8443/hello; curl -sS {proxy} https://files.example.org:8443/hello`,
		want:   []string{"hello by HTTP/2.0\nhello by HTTP/2.0\n"},
	},
	{
		name: "every name below", host: "*.example.org", plain: true, needs: []testenv.Feature{testenv.Curl},
		script: `curl -sS https://files.example.org/hello; curl -sS https://other.example.org/; curl -sS http://FILES.Example.org/hello -H Host:files.example.org`,
		want:   []string{"hello by HTTP/2.0\nthe other host\nhello by HTTP/1.1\n"},
	},
	{
		name: "an address", host: addresses[filesHost], plain: true, needs: []testenv.Feature{testenv.Curl},
		script: `curl -sS -k https://93.184.215.10/hello; curl -sS http://93.184.215.10/hello; curl -sS {proxy} http://93.184.215.10/hello`,
		want:   []string{"hello by HTTP/2.0\nhello by HTTP/1.1\nhello by HTTP/1.1\n"},
	},
	{
		name: "an address of IPv6", host: "[" + addresses[sixHost] + "]", plain: true, needs: []testenv.Feature{testenv.Curl},
		script: `curl -sS -k -H 'Host: six.example.org' 'https://[2606:2800:21f:cb07::10]/hello' --http1.1`,
		want:   []string{"hello by HTTP/1.1\n"},
	},
	{
		name: "a server without IPv4", host: sixHost, needs: []testenv.Feature{testenv.Curl},
		script: `curl -sS https://six.example.org/hello; curl -sS -4 https://six.example.org/hello || true`,
		want:   []string{"hello by HTTP/2.0\n"},
	},
	{
		name: "git", host: gitHost, needs: []testenv.Feature{testenv.Git},
		script: `
			git clone -q https://git.example.org/{way}.git r` + gitWork + `
			git clone -q --depth 1 https://git.example.org/{way}.git shallow
			git -C shallow log --format='shallow %s'`,
		want: []string{"first", "5000000 big", "shallow second"},
	},
	{
		name: "git by ssh", host: gitHost + ":22", plain: true, needs: []testenv.Feature{testenv.Git, testenv.OpenSSH},
		script: `
			chmod 600 identity
			export GIT_SSH_COMMAND="ssh -F none -i $PWD/identity -o UserKnownHostsFile=$PWD/known_hosts -o StrictHostKeyChecking=yes -o BatchMode=yes"
			git clone -q "ssh://$(cat login)@git.example.org/$(cat repositories)/ssh-{way}.git" r` + gitWork,
		want: []string{"first", "5000000 big"},
	},
	{
		name: "server-sent events", host: streamHost, needs: []testenv.Feature{testenv.Curl},
		script: `
			for version in 1.1 2; do
				curl -sSN -m 60 --http$version https://streams.example.org/events/{way}$version | while read -r line; do
					case $line in
					id:*) curl -sS -m 60 -X POST "https://streams.example.org/seen/{way}$version/${line#id: }" ;;
					data:*) echo "$version ${line#data: }" ;;
					esac
				done
			done`,
		want: []string{"1.1 event 0\n1.1 event 1\n1.1 event 2\n1.1 event 3\n1.1 event 4\n1.1 end\n", "2 event 4\n2 end\n"},
	},
	{
		name: "websocket of node", host: streamHost, needs: []testenv.Feature{testenv.Node}, own: []string{nodeBundle},
		files: map[string]string{"client.mjs": `
import https from 'node:https';
const said = ['one', 'two', 'three'];
const headers = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' };
https.get('https://streams.example.org/socket', { headers }).on('upgrade', (answer, socket) => {
  console.log(answer.statusCode, answer.headers['sec-websocket-accept']);
  const say = () => {
    const text = Buffer.from(said.shift()), mask = Buffer.from([1, 2, 3, 4]);
    socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length]), mask, text.map((b, i) => b ^ mask[i % 4])]));
  };
  socket.on('data', frame => {
    console.log(frame.subarray(2).toString());
    if (said.length) say(); else socket.end();
  });
  say();
});
`},
		script: `node client.mjs`,
		want:   []string{"101 s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "ONE\nTWO\nTHREE\n"},
	},
	{
		name: "go client", host: streamHost, client: true,
		script: `REALTEST_CLIENT=streams ./client`,
		want:   []string{"HTTP/2.0 trailers 21", "HTTP/1.1 trailers 21", "talked 20 times, status 0 bye"},
	},
}

// gitWork is the work in a clone: a small and a large change are pushed, and
// fetched again.
const gitWork = `
			cd r
			git log --format=%s
			git config user.name somebody
			git config user.email somebody@example.org
			head -c 5000000 /dev/urandom > big
			git add big
			git commit -qm second
			git push -q origin HEAD
			git push -q origin HEAD:refs/heads/side
			git fetch -q
			git ls-remote --heads origin
			git cat-file -s origin/side:big | sed 's/$/ big/'
			cd ..`
