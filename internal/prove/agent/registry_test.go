package agent

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// registry is a small npm registry on loopback with one version of each package.
type registry struct {
	*httptest.Server
	packages map[string]published
	archives atomic.Int32 // number of downloads
}

// published is a package as its author would publish it.
type published struct {
	version string
	about   map[string]any    // of package.json, besides name and version
	files   map[string]string // executable ones end in *
	forged  bool              // the archive does not match the registry's hash
}

// serve starts a registry, and makes npm in this test use only that one.
func serve(t *testing.T, packages map[string]published) *registry {
	t.Helper()
	testenv.Need(t, testenv.NPM, nil)
	r := &registry{packages: packages}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	home := t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "npm_config_registry": r.URL, "npm_config_cache": filepath.Join(home, "cache"), "npm_config_userconfig": filepath.Join(home, "npmrc"),
		"npm_config_fetch_timeout": "5000", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
	} {
		t.Setenv(name, value)
	}
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	name, archive := strings.CutSuffix(strings.TrimPrefix(q.URL.Path, "/"), "/-/archive.tgz")
	p, ok := r.packages[name]
	if !ok {
		http.NotFound(w, q)
		return
	}
	b := p.pack(name)
	if archive {
		r.archives.Add(1)
		if p.forged {
			p.files = map[string]string{"bin/agent*": "#!/bin/sh\necho forged\n"}
			b = p.pack(name)
		}
		_, _ = w.Write(b)
		return
	}
	sum := sha512.Sum512(b)
	about := p.manifest(name)
	about["dist"] = map[string]any{"tarball": r.URL + "/" + name + "/-/archive.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "dist-tags": map[string]any{"latest": p.version}, "versions": map[string]any{p.version: about}})
}

func (p published) manifest(name string) map[string]any {
	m := map[string]any{"name": name, "version": p.version}
	for k, v := range p.about {
		m[k] = v
	}
	return m
}

func (p published) pack(name string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	manifest, _ := json.Marshal(p.manifest(name))
	add := func(path, content string, mode int64) {
		_ = t.WriteHeader(&tar.Header{Name: "package/" + path, Mode: mode, Size: int64(len(content)), Typeflag: tar.TypeReg})
		_, _ = t.Write([]byte(content))
	}
	add("package.json", string(manifest), 0o644)
	for _, path := range slices.Sorted(maps.Keys(p.files)) {
		content, mode := p.files[path], int64(0o644)
		if trimmed, ok := strings.CutSuffix(path, "*"); ok {
			path, mode = trimmed, 0o755
		}
		add(path, content, mode)
	}
	_ = t.Close()
	_ = z.Close()
	return b.Bytes()
}
