package realtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

func nodeThreads(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Node)
	p.write(map[string]string{"app.js": `
const { Worker, isMainThread, parentPort } = require('worker_threads');
const { execFileSync, fork } = require('child_process');
const fs = require('fs'), os = require('os'), crypto = require('crypto'), path = require('path');
if (!isMainThread) {
  parentPort.postMessage(crypto.pbkdf2Sync('a', 'b', 1000, 16, 'sha256').length);
} else if (process.argv[2] === 'child') {
  process.send('forked');
} else {
  let left = 16, sum = 0;
  for (let i = 0; i < 16; i++) new Worker(__filename).on('message', n => { sum += n; if (--left === 0) console.log('workers', sum); });
  for (let i = 0; i < 64; i++) crypto.pbkdf2('a', 'b', 1000, 16, 'sha256', () => {});
  fork(__filename, ['child']).on('message', m => console.log(m));
  console.log(execFileSync('sh', ['-c', 'echo executed']).toString().trim(), os.cpus().length > 0);
  const seen = fs.watch('.', (e, name) => { if (name === 'watched') { console.log('watched'); seen.close(); } });
  setTimeout(() => fs.writeFileSync('watched', ''), 50);
}
`})
	contains(t, p.inside(`node app.js; node -p 'process.versions.v8.length > 0'`), "workers 256", "forked", "executed true", "watched", "true")
}

// npm fills the home's cache from a registry on loopback, stops the registry, and
// installs and tests inside from the cache only.
func npm(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Node, testenv.NPM)
	registry := httptest.NewServer(onePackage(t))
	p.write(map[string]string{
		"package.json": `{"name":"app","version":"1.0.0","scripts":{"test":"leftover && node test.js"},"dependencies":{"leftover":"1.0.0"}}`,
		"test.js":      "if (require('leftover') !== 'from the package') process.exit(1);\nconsole.log('tested');\n",
	})
	p.bare(`npm install --silent --no-audit --no-fund --registry ` + registry.URL + `; rm -rf node_modules`)
	registry.Close()
	lock := p.read("package-lock.json")
	out := p.inside(`npm ci --offline --no-audit --no-fund; npm test; npm ls; npx --offline leftover`)
	contains(t, out, "added 1 package", "tested", "leftover@1.0.0", "the program of the package")
	if p.read("package-lock.json") != lock {
		t.Error("npm ci changed package-lock.json")
	}
	// Again over the existing install, and outside with what was installed
	// inside.
	p.inside(`npm ci --offline --no-audit --no-fund --prefer-offline`)
	contains(t, p.bare(`node test.js`), "tested")
}

// onePackage is a registry with one package, which has a program.
func onePackage(t *testing.T) http.Handler {
	t.Helper()
	var data bytes.Buffer
	z := gzip.NewWriter(&data)
	w := tar.NewWriter(z)
	for _, f := range []struct{ name, text string }{
		{"package/package.json", `{"name":"leftover","version":"1.0.0","bin":"cli.js"}`},
		{"package/index.js", "module.exports = 'from the package';\n"},
		{"package/cli.js", "#!/usr/bin/env node\nconsole.log('the program of the package');\n"},
	} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o755, Size: int64(len(f.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(data.Bytes())
	integrity := "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, ".tgz"):
			rw.Write(data.Bytes())
		case r.URL.Path == "/leftover":
			scheme := "http"
			if r.TLS != nil {
				scheme = "https"
			}
			rw.Header().Set("Content-Type", "application/json")
			json.NewEncoder(rw).Encode(map[string]any{
				"name":      "leftover",
				"dist-tags": map[string]string{"latest": "1.0.0"},
				"versions": map[string]any{"1.0.0": map[string]any{
					"name": "leftover", "version": "1.0.0", "bin": map[string]string{"leftover": "cli.js"},
					"dist": map[string]string{"tarball": fmt.Sprintf("%s://%s/leftover.tgz", scheme, r.Host), "integrity": integrity},
				}},
			})
		default:
			http.NotFound(rw, r)
		}
	})
}
