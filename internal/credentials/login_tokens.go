package credentials

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/policy"
)

// tokens are what a login file holds.
type tokens struct {
	access, refresh, id string
	ends                time.Time // of access; zero where nothing says it
	file                string    // without links
	data                []byte    // of the file
	there               string    // hash of the refresh token in it
}

func (t tokens) result() *result { return &result{value: []byte(t.access), expires: t.ends} }

// valid reports whether the access token is there and does not end before a time.
func (t tokens) valid(at time.Time) bool {
	return t.access != "" && (t.ends.IsZero() || at.Before(t.ends))
}

func hashOfText(text string) string { return hashOf(Secret{Value: text}) }

// errNoJSON can also mean that the program is writing the file.
var errNoJSON = errors.New("it is not JSON")

// tokensIn reads the content of a login file.
func (s *loginSource) tokensIn(data []byte) (tokens, error) {
	if !json.Valid(data) {
		return tokens{}, errNoJSON
	}
	t := tokens{access: jsonText(data, s.key), refresh: jsonText(data, s.renewal.Refresh), id: jsonText(data, s.renewal.ID)}
	t.ends = jwtEnd(t.access)
	if ms, err := strconv.ParseInt(jsonText(data, s.renewal.Ends), 10, 64); err == nil {
		t.ends = time.UnixMilli(ms)
	}
	return t, nil
}

// jsonText is the text or number at a key of a JSON text; "" where there is none.
func jsonText(data []byte, key string) string {
	if key == "" {
		return ""
	}
	value, err := policy.SecretIn(data, map[string]string{"key": key})
	if err != nil {
		return ""
	}
	return string(value)
}

// keep writes a renewed login to the file that was prepared, if the refresh token that
// was used for it is still there.
func (s *loginSource) keep(old, fresh tokens, file *sys.Replacement) error {
	now, err := s.read()
	if err == nil && now.there != old.there {
		return nil // the user has logged in anew meanwhile
	}
	var content []byte
	if err == nil {
		content, err = withValues(now.data, s.values(fresh))
	}
	if err == nil {
		err = file.Commit(content)
	}
	if err != nil {
		why := &fetchError{text: "the login was renewed, but not written to " + old.file + "; it is used until the run ends", cause: err, hint: s.renewal.Login}
		s.spare = &unwritten{old.there, fresh, why}
		return why
	}
	if s.spare = nil; fresh.refresh != old.refresh {
		s.spare = &unwritten{old.there, fresh, &fetchError{text: "another program has written it back to " + old.file, hint: s.renewal.Login}}
	}
	if dir, err := os.Open(filepath.Dir(old.file)); err == nil {
		dir.Sync() // where that fails the file is still there until power is lost
		dir.Close()
	}
	return nil
}

// lost returns why a login that was renewed is lost with this run; nil if it is not.
func (s *loginSource) lost() error {
	if s.spare == nil {
		return nil
	}
	if t, err := s.read(); err == nil && t.there != s.spare.spent {
		return nil // the user has logged in anew
	}
	return s.spare.why
}

// values are what a renewal changes in the file, by key, as JSON.
func (s *loginSource) values(t tokens) map[string]string {
	r, out := s.renewal, map[string]string{}
	for key, value := range map[string]string{s.key: t.access, r.Refresh: t.refresh, r.ID: t.id, r.Time: s.now().UTC().Format(time.RFC3339Nano)} {
		out[key] = strconv.Quote(value) // printable ASCII, so it is JSON as well
	}
	ends := t.ends
	if ends.IsZero() { // the answer does not say, and the old end is past
		ends = s.now().Add(time.Hour)
	}
	out[r.Ends] = strconv.FormatInt(ends.UnixMilli(), 10)
	delete(out, "")
	return out
}

// withValues returns a JSON text with other values at some keys, the parts of the way
// with dots between. Every other byte stays, and a key that is not there is not added.
func withValues(data []byte, values map[string]string) ([]byte, error) {
	e := jsonEditor{data: data, values: values, dec: json.NewDecoder(bytes.NewReader(data))}
	if err := e.value(""); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	return append(e.out, data[e.copied:]...), nil
}

type jsonEditor struct {
	data   []byte
	values map[string]string
	dec    *json.Decoder
	out    []byte
	copied int // bytes of data that are in out, or were replaced
}

// value passes over one value, the way to which is at.
func (e *jsonEditor) value(at string) error {
	start := int(e.dec.InputOffset())
	start += len(e.data[start:]) - len(bytes.TrimLeft(e.data[start:], " \t\r\n:,"))
	t, err := e.dec.Token()
	if err != nil {
		return err
	}
	if open, ok := t.(json.Delim); ok {
		for e.dec.More() {
			below := "\x00" // no key leads into a list
			if open == '{' {
				name, err := e.dec.Token()
				if err != nil {
					return err
				}
				below = strings.TrimPrefix(at+"."+fmt.Sprint(name), ".")
			}
			if err := e.value(below); err != nil {
				return err
			}
		}
		_, err := e.dec.Token()
		return err
	}
	if text, ok := e.values[at]; ok {
		e.out = append(append(e.out, e.data[e.copied:start]...), text...)
		e.copied = int(e.dec.InputOffset())
	}
	return nil
}

// jwtClaims are the claims of a JWT (RFC 7519, not verified); nil for another text.
func jwtClaims(token string) map[string]json.RawMessage {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || parts[2] == "" {
		return nil
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims map[string]json.RawMessage
	if err != nil || json.Unmarshal(data, &claims) != nil {
		return nil
	}
	return claims
}

// jwtEnd is when a JWT says that it ends; zero where it does not.
func jwtEnd(token string) time.Time {
	var at float64
	if raw := jwtClaims(token)["exp"]; raw == nil || json.Unmarshal(raw, &at) != nil || at <= 0 || at > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(at), 0)
}
