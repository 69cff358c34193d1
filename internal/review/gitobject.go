//go:build linux

package review

import (
	"bufio"
	"compress/zlib"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"
)

const (
	// MaxCommits is how many new commits of a repository are listed, MaxRefs how
	// many refs.
	MaxCommits = 1000
	MaxRefs    = 1000

	maxObject = 1 << 20 // bytes of a commit or a tag that is read
	maxCheck  = 2 << 30 // bytes of an object that is checked against its name
)

// readObject reads the beginning of a loose object of what a run left.
func readObject(upper int, repo, id string) (kind string, body []byte, err error) {
	f, err := openFile(upper, repo+"/objects/"+id[:2]+"/"+id[2:], true)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	r, kind, _, err := inflate(f, nil)
	if err != nil {
		return "", nil, err
	}
	body, err = io.ReadAll(io.LimitReader(r, maxObject))
	return kind, body, err
}

// inflate opens the content of a loose object: a header such as "commit 123",
// NUL, and as many bytes (gitformat-loose(5)). What is read goes through h too.
func inflate(f io.Reader, h hash.Hash) (r io.Reader, kind string, size int64, err error) {
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, "", 0, err
	}
	var in io.Reader = z
	if h != nil {
		in = io.TeeReader(z, h)
	}
	b := bufio.NewReaderSize(in, 64) // never ahead of what is hashed, for h sees all of it
	head, err := b.ReadSlice(0)
	if err != nil {
		return nil, "", 0, errors.New("it has no header")
	}
	kind, number, _ := strings.Cut(string(head[:len(head)-1]), " ")
	size, err = strconv.ParseInt(number, 10, 64)
	if err != nil || size < 0 {
		return nil, "", 0, errors.New("its header is not valid")
	}
	return b, kind, size, nil
}

// checkObject sees that a loose object is what its name says. Git itself trusts
// the name when it reads a file's content, and does not write an object whose
// name is taken: one that lies would be checked out by and by.
func checkObject(f *os.File, id string) error {
	h := sha1.New()
	if len(id) == 64 {
		h = sha256.New()
	}
	r, _, size, err := inflate(f, h)
	if err != nil {
		return fmt.Errorf("reading a git object: %w", err)
	}
	if size > maxCheck {
		return errors.New("a git object is too large to be checked against its name")
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r, size+1))
	if err != nil {
		return fmt.Errorf("reading a git object: %w", err)
	}
	if n != size || hex.EncodeToString(h.Sum(nil)) != id {
		return errors.New("a git object does not match its name")
	}
	return nil
}
