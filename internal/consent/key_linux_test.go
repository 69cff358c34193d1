//go:build linux

package consent

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

func TestApproverKey(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	keys := make([]ed25519.PrivateKey, 8)
	var made sync.WaitGroup
	for i := range keys {
		made.Go(func() { keys[i], _ = ApproverKey(dir) })
	}
	made.Wait()
	for _, k := range keys {
		if k == nil || !bytes.Equal(k, keys[0]) {
			t.Fatal("not all have the same key")
		}
	}
	path := filepath.Join(dir, approverFile)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	for name, spoil := range map[string]func() error{
		"readable by others": func() error { return os.Chmod(path, 0o640) },
		"a link":             func() error { return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path)) },
		"a FIFO":             func() error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
		"no key":             func() error { return errors.Join(os.Remove(path), os.WriteFile(path, []byte("hello"), 0o600)) },
		"empty":              func() error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
	} {
		os.RemoveAll(dir)
		if _, err := ApproverKey(dir); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if k, err := ApproverKey(dir); err == nil {
			t.Errorf("%s: got %v", name, k.Public())
		}
	}
}
