package policy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// ready says why the secret of c cannot be had now; "" when it can. The source of
// c is then the one that a plan needs.
func (a *agentPlan) ready(c *offered) string {
	login := c.login
	if c.Source.Kind == "env" {
		if a.host.lookup(c.Source.Value) != "" {
			return ""
		}
		if login == "" {
			login = "export " + c.Source.Value + "=…"
		}
		return a.preset.Title + " has no credential: " + login
	}
	if login == "" {
		login = "log in once outside"
	}
	path := a.outside(c.Source.Value)
	data, err := readPolicy(path, a.host.UID, false)
	defer clear(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a.preset.Title + " has no credential: " + login
	case err != nil:
		return fmt.Sprintf("%s: its credential cannot be used: %v", a.preset.Title, err)
	}
	c.Source.Value = path
	secret, err := SecretIn(data, c.Source.Options)
	defer clear(secret)
	if err != nil || len(secret) == 0 {
		return a.preset.Title + " has no credential: " + login
	}
	if c.expires == "" {
		return ""
	}
	ends, err := SecretIn(data, map[string]string{"key": c.expires})
	var ms int64
	if _, scan := fmt.Sscan(string(ends), &ms); err != nil || scan != nil {
		return ""
	}
	if at := time.UnixMilli(ms); time.Until(at) < time.Minute {
		return fmt.Sprintf("the login of %s ended at %s: %s", a.preset.Title, at.UTC().Format(time.RFC3339), login)
	}
	return ""
}

// errNoSecret says that a file has no secret at the named place. It holds nothing
// of the file.
var errNoSecret = errors.New("the file has no such value")

// SecretIn takes a value out of the text of a file: with the option key of a JSON
// file, the parts of the way with dots between; with the option variable of lines
// NAME=VALUE. Without either it is the text. No error holds anything of the text.
func SecretIn(data []byte, options map[string]string) ([]byte, error) {
	if name := options["variable"]; name != "" {
		return lineValue(data, name)
	}
	key := options["key"]
	if key == "" {
		return bytes.Clone(data), nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) != nil {
		return nil, errNoSecret
	}
	for part := range strings.SplitSeq(key, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, errNoSecret
		}
		if value, ok = object[part]; !ok {
			return nil, errNoSecret
		}
	}
	switch v := value.(type) {
	case string:
		return []byte(v), nil
	case json.Number:
		return []byte(v), nil
	}
	return nil, errNoSecret
}

// lineValue is the value of a variable in lines of NAME=VALUE, as programs that
// read .env files take them: export before it and quotes around it are no part.
func lineValue(data []byte, name string) ([]byte, error) {
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		line := strings.TrimPrefix(strings.TrimSpace(s.Text()), "export ")
		n, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(n) != name {
			continue
		}
		value = strings.TrimSpace(value)
		for _, quote := range []string{`"`, `'`} {
			if len(value) > 1 && strings.HasPrefix(value, quote) && strings.HasSuffix(value, quote) {
				value = value[1 : len(value)-1]
			}
		}
		if value == "" {
			break
		}
		return []byte(value), nil
	}
	return nil, errNoSecret
}
