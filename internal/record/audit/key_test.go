package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestRotate: a new key signs, the old private key is gone, and what it signed
// can still be verified.
func TestRotate(t *testing.T) {
	path := sample(t)
	dir := filepath.Join(filepath.Dir(filepath.Dir(path)), "keys")
	before := read(t, filepath.Join(dir, privateFile))
	old, err := PublicKeys(dir)
	if err != nil || len(old) != 1 || !old[0].Current {
		t.Fatalf("%+v, %v", old, err)
	}
	running, err := Create(filepath.Dir(path), Options{Session: "running"})
	if err != nil {
		t.Fatal(err)
	}
	k, err := Rotate(dir)
	if err != nil || !k.Current || k.Hash == old[0].Hash {
		t.Fatalf("%+v, %v", k, err)
	}
	for _, e := range must(os.ReadDir(dir)) {
		content := read(t, filepath.Join(dir, e.Name()))
		if strings.Contains(string(content), strings.TrimSpace(string(before))) {
			t.Errorf("%s holds the old private key", e.Name())
		}
		if i, err := e.Info(); err != nil || i.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v", e.Name(), i.Mode())
		}
	}
	keys, err := PublicKeys(dir)
	if err != nil || len(keys) != 2 || keys[0] != k || keys[1].Hash != old[0].Hash || keys[1].Current {
		t.Errorf("%+v, %v", keys, err)
	}
	verified(t, path).want(t, Complete, "")
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
	verified(t, running.Path()).want(t, Complete, "")
	later, err := Create(filepath.Dir(path), Options{Session: "later"})
	if err != nil {
		t.Fatal(err)
	}
	later.Close()
	r := verified(t, later.Path())
	r.want(t, Complete, "")
	if !slices.Equal(r.Keys, []string{k.Hash}) {
		t.Errorf("signed by %q", r.Keys)
	}
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// TestFirstUse: several first runs at once all sign with one key.
func TestFirstUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	hashes := make(chan uint32, 8)
	var all sync.WaitGroup
	for range cap(hashes) {
		all.Go(func() {
			k, err := loadKey(dir)
			if err != nil {
				t.Error(err)
				hashes <- 0
				return
			}
			hashes <- k.KeyHash()
		})
	}
	all.Wait()
	first := <-hashes
	for range cap(hashes) - 1 {
		if h := <-hashes; h != first {
			t.Errorf("keys %08x and %08x", first, h)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, privateFile+"*")); len(left) != 1 {
		t.Errorf("private keys: %q", left)
	}
}

// TestBadKey: with a key that others can read, or an invalid one, nothing begins.
func TestBadKey(t *testing.T) {
	for _, c := range []struct {
		name    string
		mode    os.FileMode
		content string
		problem string
	}{
		{"readable by others", 0o644, "", "others could sign"},
		{"empty", 0o600, "\n", "malformed"},
		{"another's", 0o600, "PRIVATE+KEY+example.org+3d5fb8e3+AQUk5d7eWlmI0dDD7wYfiPHt1ZaRjDZ9Q7cm3dcVBJGP", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := t.TempDir()
			if _, err := Rotate(filepath.Join(state, "keys")); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(state, "keys", privateFile)
			if c.content != "" {
				if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			_, err := Create(filepath.Join(state, "log"), Options{Session: "s"})
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%v, want %q", err, c.problem)
			}
			if left, _ := List(filepath.Join(state, "log")); len(left) > 0 {
				t.Errorf("a log was begun: %+v", left)
			}
		})
	}
}
