package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// needle is in one of a thousand files.
const needle = "haystack_needle"

// treeFile is the path of file i of a tree of source files, 50 to a directory.
func treeFile(i int) string {
	return fmt.Sprintf("m%02d/p%02d/f%05d.txt", i/50/20, i/50%20, i)
}

// treeText is about 600 to 1800 bytes of words, always the same for one i.
func treeText(i int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(i)))
	words := []string{"open", "read", "close", "file", "policy", "value", "return", "error", "path", "range", "struct", "list"}
	var b bytes.Buffer
	if i%1000 == 7 {
		b.WriteString(needle + "\n")
	}
	for range 15 + r.IntN(30) {
		for range 7 {
			b.WriteString(words[r.IntN(len(words))])
			b.WriteByte(' ')
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// filesPerDirectory is between that of Go modules (4) and npm packages.
const filesPerDirectory = 10

// makeFiles writes files of one line each into directories three levels deep.
func (b *bench) makeFiles(dir string, files int) error {
	for i := range files {
		d := i / filesPerDirectory
		p := filepath.Join(dir, "src", fmt.Sprintf("m%03d/p%03d/f%07d.txt", d/100, d%100, i))
		if i%filesPerDirectory == 0 {
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				return fmt.Errorf("making a tree: %w", err)
			}
		}
		if err := os.WriteFile(p, []byte("line\n"), 0o644); err != nil {
			return fmt.Errorf("making a tree: %w", err)
		}
	}
	return b.user.chownTree(dir)
}

// makeRepository commits a tree of files and leaves an index in which git trusts
// the times of all files, so that a status does not read their contents.
func (b *bench) makeRepository(dir string, files int) error {
	for i := range files {
		p := filepath.Join(dir, "src", treeFile(i))
		if i%50 == 0 {
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				return fmt.Errorf("making a tree: %w", err)
			}
		}
		if err := os.WriteFile(p, treeText(i), 0o644); err != nil {
			return fmt.Errorf("making a tree: %w", err)
		}
	}
	if err := b.user.chownTree(dir); err != nil {
		return err
	}
	steps := [][]string{
		{"init", "-q"},
		{"config", "user.name", "bench"},
		{"config", "user.email", "bench@localhost"},
		{"config", "gc.auto", "0"},
		{"add", "."},
		{"commit", "-q", "-m", "tree"},
	}
	for _, s := range steps {
		if _, err := b.runAs(dir, "git", s...); err != nil {
			return err
		}
	}
	time.Sleep(1100 * time.Millisecond) // git reads files again that are as new as its index
	if err := os.Chtimes(filepath.Join(dir, ".git", "index"), time.Time{}, time.Now()); err != nil {
		return fmt.Errorf("setting the time of the index back: %w", err)
	}
	_, err := b.runAs(dir, "git", "status", "--porcelain")
	return err
}

// makeArchive writes in.tar, whose files are below out.
func (b *bench) makeArchive(dir string, files int) error {
	f, err := os.Create(filepath.Join(dir, "in.tar"))
	if err != nil {
		return fmt.Errorf("making an archive: %w", err)
	}
	w := tar.NewWriter(f)
	for i := range files {
		text := treeText(i)
		err = w.WriteHeader(&tar.Header{Name: "out/" + treeFile(i), Mode: 0o644, Size: int64(len(text)), ModTime: time.Unix(1e9, 0)})
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			break
		}
	}
	if err := errors.Join(err, w.Close(), f.Close()); err != nil {
		return fmt.Errorf("making an archive: %w", err)
	}
	return nil
}

// makeModule writes a Go module that needs only the standard library, and builds
// it once, which fills the cache.
func (b *bench) makeModule(dir string) error {
	const packages = 40
	main := "package main\n\nimport (\n\t\"fmt\"\n"
	sum := ""
	files := map[string]string{"go.mod": "module example.test/app\n\ngo 1.21\n"}
	for i := range packages {
		name := fmt.Sprintf("p%02d", i)
		main += fmt.Sprintf("\t\"example.test/app/%s\"\n", name)
		sum += fmt.Sprintf("\tfmt.Println(%s.Text(%d))\n", name, i)
		files[name+"/"+name+".go"] = fmt.Sprintf("package %s\n\nimport (\n\t\"encoding/json\"\n\t\"strings\"\n)\n\n// Text is some text of n.\nfunc Text(n int) string {\n\tb, _ := json.Marshal(map[string]int{\"%s\": n})\n\treturn strings.ToUpper(string(b))\n}\n", name, name)
	}
	files["main.go"] = main + ")\n\nfunc main() {\n" + sum + "}\n"
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return fmt.Errorf("making a module: %w", err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			return fmt.Errorf("making a module: %w", err)
		}
	}
	if err := b.user.chownTree(dir); err != nil {
		return err
	}
	_, err := b.runAs(dir, "go", "build", "-o", "app", ".")
	return err
}
