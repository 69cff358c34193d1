package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

func npmName(i int) string { return fmt.Sprintf("bench-dep-%03d", i) }

func (b *bench) npmPackages() int {
	if b.options.quick {
		return 10
	}
	return 50
}

// npmFiles is the number of files in a package besides its package.json.
const npmFiles = 40

// makeNPM writes a project with a lock file and fills npm's cache from our own
// registry on loopback, which is stopped afterwards.
func (b *bench) makeNPM(dir string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serving packages: %w", err)
	}
	url := "http://" + listener.Addr().String()
	handler, err := newRegistry(url, b.npmPackages())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: handler}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()

	needs := map[string]string{}
	for i := range b.npmPackages() {
		needs[npmName(i)] = "1.0.0"
	}
	project, err := json.Marshal(map[string]any{"name": "bench", "version": "1.0.0", "private": true, "dependencies": needs})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "package.json"), project, 0o644)
	}
	if err == nil {
		err = b.user.chownTree(dir)
	}
	if err == nil {
		_, err = b.runAs(dir, "npm", "install", "--registry="+url, "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=0")
	}
	if e := errors.Join(server.Close(), ignoreClosed(<-done)); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("filling the cache of npm: %w", err)
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// registry serves what npm needs to install its packages.
type registry struct {
	documents map[string][]byte // by path
}

func newRegistry(url string, packages int) (*registry, error) {
	r := &registry{documents: map[string][]byte{}}
	for i := range packages {
		name := npmName(i)
		archive, err := npmArchive(name, i)
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		digest := sha512.Sum512(archive)
		path := "/" + name + "/-/" + name + "-1.0.0.tgz"
		r.documents[path] = archive
		r.documents["/"+name], err = json.Marshal(map[string]any{
			"name":      name,
			"dist-tags": map[string]string{"latest": "1.0.0"},
			"versions": map[string]any{"1.0.0": map[string]any{
				"name": name, "version": "1.0.0",
				"dist": map[string]string{
					"tarball":   url + path,
					"integrity": "sha512-" + base64.StdEncoding.EncodeToString(digest[:]),
				},
			}},
		})
		if err != nil {
			return nil, fmt.Errorf("describing %s: %w", name, err)
		}
	}
	return r, nil
}

func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	text, ok := r.documents[q.URL.Path]
	if !ok {
		http.NotFound(w, q)
		return
	}
	if !strings.HasSuffix(q.URL.Path, ".tgz") {
		w.Header().Set("Content-Type", "application/json")
	}
	_, _ = w.Write(text) // npm would notice by the digest
}

// npmArchive is a package in npm's archive format.
func npmArchive(name string, i int) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	add := func(file string, text []byte) error {
		if err := t.WriteHeader(&tar.Header{Name: "package/" + file, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err := t.Write(text)
		return err
	}
	err := add("package.json", fmt.Appendf(nil, `{"name":%q,"version":"1.0.0","main":"lib/f0.js"}`, name))
	for f := range npmFiles {
		err = errors.Join(err, add(fmt.Sprintf("lib/f%d.js", f), append([]byte("// "), treeText(i*npmFiles+f)...)))
	}
	err = errors.Join(err, t.Close(), z.Close()) // before the bytes are read
	return b.Bytes(), err
}
