package realtest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// epoch is the modification time of everything that the sites serve.
var epoch = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

// static serves documents by path, and nothing else.
func static(documents map[string][]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := documents[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/") {
			w.Header().Set("Content-Type", "text/html")
		}
		http.ServeContent(w, r, "", epoch, bytes.NewReader(data))
	})
}

// document is a file of an archive.
type document struct{ name, text string }

func zipped(t *testing.T, documents ...document) []byte {
	t.Helper()
	var data bytes.Buffer
	z := zip.NewWriter(&data)
	for _, d := range documents {
		w, err := z.Create(d.name)
		if err == nil {
			_, err = io.WriteString(w, d.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func tarred(t *testing.T, documents ...document) []byte {
	t.Helper()
	var data bytes.Buffer
	z := gzip.NewWriter(&data)
	w := tar.NewWriter(z)
	for _, d := range documents {
		err := w.WriteHeader(&tar.Header{Name: d.name, Mode: 0o644, Size: int64(len(d.text))})
		if err == nil {
			_, err = io.WriteString(w, d.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// pythonIndex is a PEP 503 index with one wheel.
func pythonIndex(t *testing.T) http.Handler {
	t.Helper()
	const file = "leftover-1.0.0-py3-none-any.whl"
	info := "leftover-1.0.0.dist-info/"
	wheel := zipped(t,
		document{"leftover.py", "word = 'from the wheel'\n"},
		document{info + "METADATA", "Metadata-Version: 2.1\nName: leftover\nVersion: 1.0.0\n"},
		document{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		document{info + "RECORD", "leftover.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	)
	page := fmt.Sprintf("<!DOCTYPE html><html><body><a href=\"/files/%s#sha256=%x\">%s</a></body></html>", file, sha256.Sum256(wheel), file)
	return static(map[string][]byte{"/simple/leftover/": []byte(page), "/files/" + file: wheel})
}

// goProxy is a module proxy (go.dev/ref/mod#goproxy-protocol) with one module.
func goProxy(t *testing.T) http.Handler {
	t.Helper()
	const module = "module example.org/leftover\n\ngo 1.21\n"
	dir := "/example.org/leftover/@v/"
	return static(map[string][]byte{
		dir + "list":        []byte("v1.2.3\n"),
		dir + "v1.2.3.info": []byte(`{"Version":"v1.2.3","Time":"2024-01-02T03:04:05Z"}`),
		dir + "v1.2.3.mod":  []byte(module),
		dir + "v1.2.3.zip": zipped(t,
			document{"example.org/leftover@v1.2.3/go.mod", module},
			document{"example.org/leftover@v1.2.3/leftover.go", "package leftover\n\n// Word is what the module is for.\nconst Word = \"from the module\"\n"}),
	})
}

// crateRegistry is a sparse cargo registry (doc.rust-lang.org/cargo, "Registry
// Index") with one crate.
func crateRegistry(t *testing.T) http.Handler {
	t.Helper()
	crate := tarred(t,
		document{"leftover-1.0.0/Cargo.toml", "[package]\nname = \"leftover\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"},
		document{"leftover-1.0.0/src/lib.rs", "pub const WORD: &str = \"from the crate\";\n"})
	line := fmt.Sprintf(`{"name":"leftover","vers":"1.0.0","deps":[],"cksum":"%x","features":{},"yanked":false}`, sha256.Sum256(crate))
	return static(map[string][]byte{
		"/index/config.json":              []byte(`{"dl":"https://` + cratesHost + `/crates"}`),
		"/index/le/ft/leftover":           []byte(line + "\n"),
		"/crates/leftover/1.0.0/download": crate,
	})
}

// debianArchive is a package archive with one package, which is never unpacked.
func debianArchive(t *testing.T) http.Handler {
	t.Helper()
	deb := bytes.Repeat([]byte("the package\n"), 1000)
	packages := fmt.Appendf(nil, "Package: leftover\nVersion: 1.0\nArchitecture: all\nMaintainer: somebody <somebody@example.org>\n"+
		"Description: nothing\nFilename: pool/leftover_1.0_all.deb\nSize: %d\nSHA256: %x\n\n", len(deb), sha256.Sum256(deb))
	release := fmt.Appendf(nil, "Origin: example\nSuite: stable\nCodename: stable\nDate: %s\nArchitectures: all amd64 arm64\nComponents: main\nSHA256:\n",
		epoch.Format(time.RFC1123))
	documents := map[string][]byte{"/debian/pool/leftover_1.0_all.deb": deb}
	for _, arch := range []string{"all", "amd64", "arm64"} {
		name := "main/binary-" + arch + "/Packages"
		data := packages
		if arch != "all" {
			data = nil
		}
		release = fmt.Appendf(release, " %x %d %s\n", sha256.Sum256(data), len(data), name)
		documents["/debian/dists/stable/"+name] = data
	}
	documents["/debian/dists/stable/Release"] = release
	return static(documents)
}

// gitSite serves the repositories below a directory, for reading and writing.
func gitSite(repositories string) http.Handler {
	backend := filepath.Join("/usr/lib/git-core", "git-http-backend")
	if out, err := exec.Command("git", "--exec-path").Output(); err == nil {
		backend = filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	}
	serve := &cgi.Handler{
		Path: backend,
		Env: []string{
			"GIT_PROJECT_ROOT=" + repositories, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=somebody",
			"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true",
			"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
		},
		InheritEnv: []string{"PATH"},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// CGI requires the length.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		serve.ServeHTTP(w, r)
	})
}
