//go:build linux

package consent

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// approverFile holds the key that must sign an answer to a request, in the
// directory of keys, which no view shows.
const approverFile = "approve.key"

// ApproverKey reads the key of the user who answers requests from the directory
// of keys, and makes one at first use. A run trusts its public half.
func ApproverKey(dir string) (ed25519.PrivateKey, error) {
	path := filepath.Join(dir, approverFile)
	k, err := readApproverKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeApproverKey(dir, path); err == nil {
			k, err = readApproverKey(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("getting the key that signs approvals: %w", err)
	}
	return k, nil
}

func readApproverKey(path string) (ed25519.PrivateKey, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if owner, ok := st.Sys().(*syscall.Stat_t); !st.Mode().IsRegular() || st.Mode().Perm()&0o077 != 0 || !ok || int(owner.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s has mode %v or another owner: others could approve with it; remove it, and the next use makes a new one", path, st.Mode())
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no key; remove it, and the next use makes a new one", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	k, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s is a key of another kind", path)
	}
	return k, nil
}

// makeApproverKey writes a new key. One that another process made meanwhile
// stays: a run may already trust it.
func makeApproverKey(dir, path string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		return err
	}
	tmp := path + "." + strings.ToLower(rand.Text()[:8])
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	if err := errors.Join(pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der}), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
