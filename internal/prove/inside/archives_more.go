//go:build linux

package inside

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func moreArchivesActions() map[string]Action {
	return map[string]Action{"unpack-form": unpackForm, "unpack-overlay": unpackOverlay}
}

// entry is one entry of an archive, as a careless reader understands it.
type entry struct {
	name, link string // link is the target of a symbolic link
	body       string
}

// careless does what each entry says, in order, below dir: names are joined
// without a check, and links are made and followed.
func (p *Probe) careless(form, dir string, entries []entry) {
	p.Control(form+": a place to unpack", func() error { return os.MkdirAll(dir, 0o755) })
	for _, e := range entries {
		at := e.name
		if !filepath.IsAbs(at) {
			at = dir + "/" + at
		}
		p.Try(form+": unpack "+e.name, func() error {
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				return err
			}
			if e.link != "" {
				_ = os.Remove(at)
				return os.Symlink(e.link, at)
			}
			return os.WriteFile(at, []byte(e.body), 0o644)
		})
	}
}

// unpackForm makes archives in the forms of the argument "forms", reads them
// back, and does what they say.
func unpackForm(p *Probe) {
	up := "../../" + filepath.Base(p.Arg("O")) // from W/unpacked
	out := p.Arg("O")
	plain := []entry{{name: up + "/canary", body: mark}, {name: up + "/x", body: mark}, {name: out + "/y", body: mark}}
	linked := []entry{{name: "d", link: out}, {name: "d/canary", body: mark}, {name: "d/x", body: mark}}
	// Two names that are one on a file system, or a directory that a later entry makes
	// a link (CVE-2021-37701).
	swapped := []entry{{name: "a/keep", body: mark}, {name: "b", link: out}, {name: "a/../b/x", body: mark}, {name: "a/../b/sub/canary", body: mark}}
	forms := map[string]func() ([]entry, error){
		"zip":       func() ([]entry, error) { return throughZip(plain) },
		"zip-links": func() ([]entry, error) { return throughZip(linked) },
		"backslash": func() ([]entry, error) {
			return throughZip([]entry{{name: strings.ReplaceAll(up, "/", "\\") + "\\x", body: mark}})
		},
		"pax":     func() ([]entry, error) { return throughTar(plain, tar.FormatPAX) },
		"gnu":     func() ([]entry, error) { return throughTar(linked, tar.FormatGNU) },
		"swapped": func() ([]entry, error) { return throughTar(swapped, tar.FormatPAX) },
		"cpio":    func() ([]entry, error) { return throughCpio(append(plain, linked...)) },
		"gzip":    func() ([]entry, error) { return throughGzip(up + "/x") },
		"patch":   func() ([]entry, error) { return throughPatch(up) },
	}
	for form := range strings.SplitSeq(p.Arg("forms"), "\n") {
		entries, err := forms[form]()
		p.Control(form+": make and read it", func() error {
			if err == nil && len(entries) == 0 {
				err = errors.New("it is empty")
			}
			return err
		})
		if form == "backslash" { // a reader for two systems accepts both as separators
			for i := range entries {
				entries[i].name = strings.ReplaceAll(entries[i].name, "\\", "/")
			}
		}
		p.careless(form, p.In("W", "unpacked", form), lengthened(entries))
	}
}

// lengthened goes up one more directory: each form has its own.
func lengthened(entries []entry) []entry {
	for i := range entries {
		if strings.HasPrefix(entries[i].name, "../../") {
			entries[i].name = "../" + entries[i].name
		}
	}
	return entries
}

func throughZip(entries []entry) ([]entry, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name}
		body := e.body
		if h.SetMode(0o644); e.link != "" {
			h.SetMode(0o777 | os.ModeSymlink)
			body = e.link
		}
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(f, body)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	var out []entry
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		e := entry{name: f.Name, body: string(body)}
		if f.Mode()&os.ModeSymlink != 0 {
			e = entry{name: f.Name, link: string(body)}
		}
		out = append(out, e)
	}
	return out, nil
}

func throughTar(entries []entry, format tar.Format) ([]entry, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: 0o644, Size: int64(len(e.body)), Format: format}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if format == tar.FormatPAX {
			h.PAXRecords = map[string]string{"HOLDFAST.note": "a record of its own"}
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, e.body); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	var out []entry
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return nil, err
		}
		body, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name: h.Name, link: h.Linkname, body: string(body)})
	}
}

// throughCpio writes and reads the new portable form (cpio(5)).
func throughCpio(entries []entry) ([]entry, error) {
	var b bytes.Buffer
	pad := func() {
		for b.Len()%4 != 0 {
			b.WriteByte(0)
		}
	}
	for _, e := range entries {
		mode, body := 0o100644, e.body
		if e.link != "" {
			mode, body = 0o120777, e.link
		}
		fmt.Fprintf(&b, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", 0, mode, 0, 0, 1, 0, len(body), 0, 0, 0, 0, len(e.name)+1, 0)
		b.WriteString(e.name + "\x00")
		pad()
		b.WriteString(body)
		pad()
	}
	var out []entry
	for data, at := b.Bytes(), 0; at+110 < len(data); {
		var mode, size, length int
		for _, f := range []struct {
			from int
			to   *int
		}{{14, &mode}, {54, &size}, {94, &length}} {
			if _, err := fmt.Sscanf(string(data[at+f.from:at+f.from+8]), "%X", f.to); err != nil {
				return nil, err
			}
		}
		name := string(data[at+110 : at+110+length-1])
		at = (at + 110 + length + 3) &^ 3
		e := entry{name: name, body: string(data[at : at+size])}
		if mode&0o170000 == 0o120000 {
			e = entry{name: name, link: e.body}
		}
		out = append(out, e)
		at = (at + size + 3) &^ 3
	}
	return out, nil
}

// throughGzip carries a name in the header of a compressed file (RFC 1952,
// 2.3.1), which gunzip --name restores.
func throughGzip(name string) ([]entry, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name = name
	_, err := io.WriteString(w, mark)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(&b)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r)
	return []entry{{name: r.Name, body: string(body)}}, err
}

// throughPatch reads a patch as programs that apply it do: names from the lines
// with +++, a link from its mode (CVE-2019-13636, CVE-2023-23946).
func throughPatch(up string) ([]entry, error) {
	text := "diff --git a/" + up + "/x b/" + up + "/x\nnew file mode 100644\n--- /dev/null\n+++ b/" + up + "/x\n@@ -0,0 +1 @@\n+" + mark +
		"diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+" + up + "/sub\n" +
		"diff --git a/l/canary b/l/canary\n--- a/l/canary\n+++ b/l/canary\n@@ -1 +1 @@\n+" + mark
	var out []entry
	link := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "diff "):
			link = false
		case line == "new file mode 120000":
			link = true
		case strings.HasPrefix(line, "+++ b/"):
			out = append(out, entry{name: strings.TrimPrefix(line, "+++ b/")})
		case strings.HasPrefix(line, "+") && len(out) > 0:
			last := &out[len(out)-1]
			if link {
				last.link = "../" + line[1:]
			} else {
				last.body += line[1:] + "\n"
			}
		}
	}
	return out, nil
}

// unpackOverlay unpacks files over names that the host runs, like a package that
// brings its own settings.
func unpackOverlay(p *Probe) {
	var entries []entry
	for name := range strings.SplitSeq(p.Arg("names"), "\n") {
		entries = append(entries, entry{name: name, body: mark})
	}
	read, err := throughTar(entries, tar.FormatPAX)
	p.Control("make and read it", func() error { return err })
	p.careless("package", p.Arg("W"), read)
	p.Control("unpack an ordinary file", func() error { return create(p.In("W", "package", "index.js")) })
}
