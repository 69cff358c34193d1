package redact

import "strings"

// class is what a name says about its value.
type class int

const (
	ordinary class = iota
	token          // random, and long
	password       // anything that a person may choose
	scheme         // of authentication, and what goes with it
	cookies
)

func (c class) kind() string {
	if c == token || c == scheme || c == cookies {
		return "token"
	}
	return "password"
}

// The ends of names, in small letters and without signs between words.
var (
	passwordNames = []string{"password", "passwd", "passphrase", "passcode"}
	tokenNames    = []string{"token", "secret", "apikey", "accesskey", "secretkey", "privatekey", "signingkey", "encryptionkey", "masterkey",
		"accountkey", "authkey", "secretkeybase", "signature"}
)

// classOf returns what a name means.
func classOf(name string) class {
	if name == "" || strings.IndexByte(lasts, name[len(name)-1]) < 0 {
		return ordinary
	}
	var flat [wordMost]byte
	n := 0
	for i := range min(len(name), wordMost) {
		c := name[i]
		if c == '-' || c == '_' || c == '.' {
			continue
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		flat[n] = c
		n++
	}
	text := string(flat[:n])
	switch text {
	case "":
		return ordinary
	case "authorization", "proxyauthorization":
		return scheme
	case "cookie", "setcookie":
		return cookies
	case "pass", "pwd":
		if name == "PWD" { // the working directory
			return ordinary
		}
		return password
	case "sig", "auth":
		return token
	}
	for _, end := range passwordNames {
		if strings.HasSuffix(text, end) {
			return password
		}
	}
	for _, end := range tokenNames {
		if strings.HasSuffix(text, end) {
			return token
		}
	}
	for _, end := range []string{"_pass", "-pass", ".pass", "_PASS", "_pwd", "_PWD"} {
		if strings.HasSuffix(name, end) && name != "OLD_PWD" {
			return password
		}
	}
	return ordinary
}
