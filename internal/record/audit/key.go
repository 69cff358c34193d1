package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// keyName is the name of every key that signs logs; the hash identifies the key.
const keyName = "holdfast.dev/log"

// Files of the directory of keys. A public key's file is named after its hash.
const (
	privateFile  = "private.key" // of the key that signs now
	publicSuffix = ".pub"
)

// PublicKey is a key by which logs were signed.
type PublicKey struct {
	Text    string // as golang.org/x/mod/sumdb/note writes it: name+hash+base64
	Hash    string // 8 hexadecimal digits
	Current bool   // it signs now
}

// Warm computes the table for making keys and signatures: crypto/ed25519 does
// that once in a process, in half a millisecond.
func Warm() { ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) }

// loadKey reads the signing key of a directory, and makes one when there is none.
func loadKey(dir string) (note.Signer, error) {
	k, err := readKey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(dir, false); err == nil {
			k, err = readKey(dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("getting the key that signs records: %w", err)
	}
	return k, nil
}

func readKey(dir string) (note.Signer, error) {
	path := filepath.Join(dir, privateFile)
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %v: others could sign with it; if no other user can have read it, run chmod 600, otherwise remove it", path, st.Mode())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	k, err := note.NewSigner(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if k.Name() != keyName {
		return nil, fmt.Errorf("%s is a key for another purpose", path)
	}
	return k, nil
}

// makeKey writes a new key, the public half first: there must be no log that
// cannot be checked. Unless replacing is set, a key that was made meanwhile stays.
func makeKey(dir string, replacing bool) error {
	if err := makePrivateDir(dir); err != nil {
		return err
	}
	secret, public, err := note.GenerateKey(rand.Reader, keyName)
	if err != nil {
		return err
	}
	if err := sys.ReplaceFile(filepath.Join(dir, keyHash(public)+publicSuffix), []byte(public+"\n"), 0o600); err != nil {
		return err
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, privateFile)
	if replacing {
		return errors.Join(sys.ReplaceFile(path, []byte(secret+"\n"), 0o600), syncDir(dir))
	}
	tmp := path + "." + strings.ToLower(rand.Text()[:8])
	defer os.Remove(tmp)
	if err := os.WriteFile(tmp, []byte(secret+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.Link(tmp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// keyHash is the hash in a key's text.
func keyHash(text string) string {
	_, rest, _ := strings.Cut(text, "+")
	hash, _, _ := strings.Cut(rest, "+")
	return hash
}

// Rotate makes a new key and removes the private half of the old one: what it
// signed can still be verified, and only runs in progress can still sign with it.
func Rotate(dir string) (PublicKey, error) {
	if err := makeKey(dir, true); err != nil {
		return PublicKey{}, fmt.Errorf("making a new key: %w", err)
	}
	keys, err := PublicKeys(dir)
	if err != nil {
		return PublicKey{}, err
	}
	return keys[0], nil
}

// PublicKeys lists the keys that signed or sign, the current one first. There is
// none before the first run.
func PublicKeys(dir string) ([]PublicKey, error) {
	paths, err := filesWithSuffix(dir, publicSuffix)
	if err != nil {
		return nil, fmt.Errorf("listing keys: %w", err)
	}
	current := ""
	if k, err := readKey(dir); err == nil {
		current = fmt.Sprintf("%08x", k.KeyHash())
	}
	var keys []PublicKey
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a key: %w", err)
		}
		public := strings.TrimSpace(string(text))
		if _, err := note.NewVerifier(public); err != nil {
			return nil, fmt.Errorf("reading the key %s: %w", path, err)
		}
		keys = append(keys, PublicKey{Text: public, Hash: keyHash(public), Current: keyHash(public) == current})
	}
	slices.SortStableFunc(keys, func(a, b PublicKey) int {
		switch {
		case a.Current == b.Current:
			return strings.Compare(a.Hash, b.Hash)
		case a.Current:
			return -1
		}
		return 1
	})
	return keys, nil
}

// filesWithSuffix lists the regular files of a directory with that suffix, sorted. A
// missing directory has none.
func filesWithSuffix(dir, suffix string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && e.Type().IsRegular() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}
