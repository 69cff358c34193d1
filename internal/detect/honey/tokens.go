package honey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strings"
)

// Alphabets of tokens.
const (
	base62    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	base32    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	base64Std = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	urlSafe   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	hexDigits = "0123456789abcdef"
)

// draw takes random bytes and letters from one pool: asking the kernel for each
// would cost more than all the rest.
type draw struct {
	pool [2048]byte
	left []byte
}

func (d *draw) bytes(n int) []byte {
	if n > len(d.left) {
		rand.Read(d.pool[:]) // ends the process when it fails (Go 1.24)
		d.left = d.pool[:]
	}
	out := bytes.Clone(d.left[:n])
	d.left = d.left[n:]
	return out
}

// text draws n letters, each equally likely.
func (d *draw) text(n int, alphabet string) string {
	most := 256 - 256%len(alphabet)
	out := make([]byte, 0, n)
	for len(out) < n {
		if b := int(d.bytes(1)[0]); b < most {
			out = append(out, alphabet[b%len(alphabet)])
		}
	}
	return string(out)
}

func awsCredentials(d *draw) (string, []string) {
	id, key := "AKIA"+d.text(16, base32), d.text(40, base64Std)
	return fmt.Sprintf("[prod-deploy]\naws_access_key_id = %s\naws_secret_access_key = %s\nregion = eu-central-1\n", id, key), []string{id, key}
}

// githubToken ends in the CRC-32 of its random part, by which scanners
// distinguish a token from a text that looks like one ("Behind GitHub's new
// authentication token formats", 2021).
func githubToken(d *draw) string {
	random := d.text(30, base62)
	sum := crc32.ChecksumIEEE([]byte(random))
	check := make([]byte, 6)
	for i := len(check) - 1; i >= 0; i-- {
		check[i] = base62[sum%62]
		sum /= 62
	}
	return "ghp_" + random + string(check)
}

func gitCredentials(d *draw) (string, []string) {
	token := githubToken(d)
	return "https://deploy-bot:" + token + "@github.com\n", []string{token}
}

// sshKey writes an Ed25519 key in the format of OpenSSH (PROTOCOL.key). Its
// secrets are the lines that only the private part determines.
func sshKey(d *draw) (string, []string) {
	private := ed25519.NewKeyFromSeed(d.bytes(ed25519.SeedSize))
	public := private.Public().(ed25519.PublicKey)
	field := func(b *bytes.Buffer, data []byte) {
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
		b.Write(data)
	}
	var blob, secret, all bytes.Buffer
	field(&blob, []byte("ssh-ed25519"))
	field(&blob, public)
	check := d.bytes(4)
	secret.Write(check)
	secret.Write(check)
	secret.Write(blob.Bytes())
	field(&secret, private)
	field(&secret, []byte("deploy@release"))
	for i := byte(1); secret.Len()%8 != 0; i++ {
		secret.WriteByte(i)
	}
	all.WriteString("openssh-key-v1\x00")
	for _, word := range []string{"none", "none", ""} {
		field(&all, []byte(word))
	}
	all.Write([]byte{0, 0, 0, 1})
	field(&all, blob.Bytes())
	field(&all, secret.Bytes())

	text := base64.StdEncoding.EncodeToString(all.Bytes())
	at := bytes.Index(all.Bytes(), private)
	first, end := (at*8+5)/6, (at+ed25519.SeedSize)*8/6 // the letters that only the private part determines
	var b strings.Builder
	var secrets []string
	b.WriteString("-----BEGIN OPENSSH PRIVATE KEY-----\n")
	for from := 0; from < len(text); from += sshLine {
		to := min(from+sshLine, len(text))
		b.WriteString(text[from:to] + "\n")
		if from, to := max(first, from), min(end, to); to-from >= leastSecret {
			secrets = append(secrets, text[from:to])
		}
	}
	b.WriteString("-----END OPENSSH PRIVATE KEY-----\n")
	return b.String(), secrets
}

const (
	sshLine     = 70 // letters of a line, as ssh-keygen writes them
	leastSecret = 16
)

// pypirc holds a token that is a macaroon of version 2 with the place, an
// identifier, a caveat and a signature (pypitoken; libmacaroons, "v2 format").
func pypirc(d *draw) (string, []string) {
	raw := hex.EncodeToString(d.bytes(16))
	id := fmt.Sprintf("%s-%s-%s-%s-%s", raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:])
	var m bytes.Buffer
	packet := func(kind byte, data string) {
		m.Write([]byte{kind, byte(len(data))})
		m.WriteString(data)
	}
	m.WriteByte(2)
	packet(1, "pypi.org")
	packet(2, id)
	m.WriteByte(0)
	packet(2, `{"version": 1, "permissions": "user"}`)
	m.Write([]byte{0, 0})
	at := m.Len() + 2
	packet(6, string(d.bytes(32)))
	token := base64.RawURLEncoding.EncodeToString(m.Bytes())
	secret := token[(at*8+5)/6:]
	return "[distutils]\nindex-servers = release\n\n[release]\nrepository = https://upload.pypi.org/legacy/\nusername = __token__\npassword = pypi-" + token + "\n", []string{secret}
}

// jwt makes a token of which only the signature is secret: honest tokens
// contain everything else too.
func jwt(d *draw, claims string) (token, signature string) {
	part := base64.RawURLEncoding.EncodeToString
	kid := d.text(43, urlSafe)
	signature = d.text(342, urlSafe)
	return part([]byte(`{"alg":"RS256","kid":"`+kid+`"}`)) + "." + part([]byte(claims)) + "." + signature, signature
}

func kubeConfig(d *draw) (string, []string) {
	token, signature := jwt(d, `{"iss":"kubernetes/serviceaccount","kubernetes.io/serviceaccount/namespace":"production","kubernetes.io/serviceaccount/service-account.name":"deploy","sub":"system:serviceaccount:production:deploy"}`)
	return `apiVersion: v1
kind: Config
clusters:
- name: prod
  cluster:
    server: https://k8s-prod.corp.internal:6443
contexts:
- name: prod
  context: {cluster: prod, user: deploy, namespace: production}
current-context: prod
users:
- name: deploy
  user:
    token: ` + token + "\n", []string{signature}
}

func gcloudADC(d *draw) (string, []string) {
	id, secret, refresh := d.text(32, hexDigits), "GOCSPX-"+d.text(28, urlSafe), "1//0"+d.text(99, urlSafe)
	return fmt.Sprintf(`{
  "client_id": "%s-%s.apps.googleusercontent.com",
  "client_secret": %q,
  "refresh_token": %q,
  "type": "authorized_user"
}
`, d.text(12, base62[:10]), id, secret, refresh), []string{refresh, secret}
}

func vaultToken(d *draw) (string, []string) {
	token := "hvs." + d.text(90, urlSafe)
	return token, []string{token}
}

func stripeConfig(d *draw) (string, []string) {
	key := "sk_live_51" + d.text(97, base62)
	return "color = \"\"\n\n[prod]\naccount_id = \"acct_1" + d.text(15, base62) + "\"\ndisplay_name = \"Production\"\nlive_mode_api_key = \"" + key + "\"\n", []string{key}
}

// keystore is version 3 of the Web3 Secret Storage Definition.
func keystore(d *draw) (string, []string) {
	hexText := func(n int) string { return d.text(n, hexDigits) }
	address, cipher, uuid := hexText(40), hexText(64), hexText(12)
	return fmt.Sprintf(`{"address":"%s","crypto":{"cipher":"aes-128-ctr","ciphertext":"%s","cipherparams":{"iv":"%s"},"kdf":"scrypt","kdfparams":{"dklen":32,"n":262144,"p":1,"r":8,"salt":"%s"},"mac":"%s"},"id":"%s-%s-4%s-8%s-%s","version":3}`,
		address, cipher, hexText(32), hexText(64), hexText(64), hexText(8), hexText(4), hexText(3), hexText(3), uuid), []string{cipher, address}
}
