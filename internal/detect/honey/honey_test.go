package honey

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func mustFiles(t testing.TB, home string) []File {
	t.Helper()
	files, err := Files(home)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func fileOf(t testing.TB, kind string) File {
	t.Helper()
	files := mustFiles(t, "/home/u")
	i := slices.IndexFunc(files, func(f File) bool { return f.Kind == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return files[i]
}

// TestShapes compares with what scanners look for, and with the definitions.
func TestShapes(t *testing.T) {
	t.Parallel()
	for kind, shape := range map[string]string{
		"aws":        `(?s)^\[prod-deploy\]\naws_access_key_id = AKIA[A-Z2-7]{16}\naws_secret_access_key = [A-Za-z0-9/+]{40}\n`,
		"github":     `^https://[a-z-]+:ghp_[0-9A-Za-z]{36}@github\.com\n$`,
		"ssh":        `^-----BEGIN OPENSSH PRIVATE KEY-----\n([A-Za-z0-9+/]{70}\n)+[A-Za-z0-9+/=]{1,70}\n-----END OPENSSH PRIVATE KEY-----\n$`,
		"pypi":       `\npassword = pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{70,}\n$`,
		"kubernetes": `\n    token: ey[A-Za-z0-9_-]{17,}\.ey[A-Za-z0-9_/\\-]{17,}\.[A-Za-z0-9_-]{300,}\n$`,
		"gcp":        `"client_secret": "GOCSPX-[A-Za-z0-9_-]{28}",\n  "refresh_token": "1//0[A-Za-z0-9_-]{90,}"`,
		"vault":      `^hvs\.[A-Za-z0-9_-]{90}$`,
		"stripe":     `live_mode_api_key = "sk_live_[0-9A-Za-z]{99}"\n$`,
		"wallet":     `"ciphertext":"[0-9a-f]{64}"`,
	} {
		if f := fileOf(t, kind); !regexp.MustCompile(shape).Match(f.Content) {
			t.Errorf("%s has not its shape:\n%s", kind, f.Content)
		}
	}
	if len(decoys) != 9 {
		t.Errorf("there are %d kinds, and 9 shapes", len(decoys))
	}
}

func TestFilesAreWhole(t *testing.T) {
	t.Parallel()
	first, second := mustFiles(t, "/home/u"), mustFiles(t, "/home/u")
	for i, f := range first {
		if !strings.HasPrefix(f.Path, "/home/u/.") || f.Mode != 0o600 || len(f.Secrets) == 0 {
			t.Errorf("%s: path %s, mode %o, %d secrets", f.Kind, f.Path, f.Mode, len(f.Secrets))
		}
		for k, s := range f.Secrets {
			if len(s) < leastSecret || !bytes.Contains(f.Content, []byte(s)) {
				t.Errorf("%s: secret %d of %d bytes is too short or not in the content", f.Kind, k, len(s))
			}
			if bytes.Contains(second[i].Content, []byte(s)) {
				t.Errorf("%s: secret %d is the same in another run", f.Kind, k)
			}
		}
	}
	if _, err := Files("home"); err == nil {
		t.Error("a home that is not an absolute path was taken")
	}
}

func TestGitHubChecksum(t *testing.T) {
	t.Parallel()
	token := fileOf(t, "github").Secrets[0]
	random, check := token[4:34], token[34:]
	sum := uint32(0)
	for _, c := range []byte(check) {
		sum = sum*62 + uint32(strings.IndexByte(base62, c))
	}
	if want := crc32.ChecksumIEEE([]byte(random)); sum != want {
		t.Errorf("the token ends in the checksum %d, want %d", sum, want)
	}
}

// TestSSHKey parses the key itself: the public part must be that of the private
// one, in both places.
func TestSSHKey(t *testing.T) {
	t.Parallel()
	f := fileOf(t, "ssh")
	block, rest := pem.Decode(f.Content)
	if block == nil || len(rest) > 0 {
		t.Fatal("it is no PEM")
	}
	data, ok := bytes.CutPrefix(block.Bytes, []byte("openssh-key-v1\x00\x00\x00\x00\x04none\x00\x00\x00\x04none\x00\x00\x00\x00\x00\x00\x00\x01"))
	if !ok {
		t.Fatalf("it begins with %q", block.Bytes[:44])
	}
	head := []byte("\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20")
	blob, ok := bytes.CutPrefix(data, append([]byte("\x00\x00\x00\x33"), head...))
	if !ok {
		t.Fatal("there is no public key")
	}
	public, secret := blob[:32], blob[36:]
	if !bytes.Equal(secret[:4], secret[4:8]) || !bytes.Equal(secret[8:8+len(head)], head) || len(secret)%8 != 0 {
		t.Fatal("the private part does not begin as it should")
	}
	private := ed25519.PrivateKey(secret[8+len(head)+32+4:][:64])
	if !bytes.Equal(secret[8+len(head):][:32], public) || !bytes.Equal(ed25519.NewKeyFromSeed(private.Seed()), private) || !bytes.Equal(private[32:], public) {
		t.Error("the parts do not belong together")
	}
	for _, s := range f.Secrets {
		if strings.Contains(base64.StdEncoding.EncodeToString(head), s[:4]) {
			t.Error("a part that all keys have counts as a secret")
		}
	}
}

// TestSSHReadsTheKey asks the program that defines the format, if it is installed.
func TestSSHReadsTheKey(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("ssh-keygen")
	if err != nil {
		return // TestSSHKey checks the parts of the format
	}
	at := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(at, fileOf(t, "ssh").Content, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "-y", "-P", "", "-f", at).CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "ssh-ed25519 ") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestJSONFilesAreJSON(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"gcp", "wallet"} {
		if f := fileOf(t, kind); !json.Valid(f.Content) {
			t.Errorf("%s: %s", kind, f.Content)
		}
	}
	token := regexp.MustCompile(`token: (\S+)`).FindSubmatch(fileOf(t, "kubernetes").Content)[1]
	for _, part := range strings.Split(string(token), ".")[:2] {
		if data, err := base64.RawURLEncoding.DecodeString(part); err != nil || !json.Valid(data) {
			t.Errorf("%q: %v", data, err)
		}
	}
}

func BenchmarkFiles(b *testing.B) {
	for b.Loop() {
		mustFiles(b, "/home/u")
	}
}
