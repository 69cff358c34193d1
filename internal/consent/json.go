package consent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/floor/event"
)

// bytesText is a text that survives JSON even if it is not UTF-8: a backslash
// is doubled, and each byte that is not part of a character is written \xNN.
type bytesText string

// MarshalText implements encoding.TextMarshaler.
func (t bytesText) MarshalText() ([]byte, error) {
	s := string(t)
	if utf8.ValidString(s) && !strings.Contains(s, `\`) {
		return []byte(s), nil
	}
	var out []byte
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, s[0])
		case r == '\\':
			out = append(out, `\\`...)
		default:
			out = append(out, s[:size]...)
		}
		s = s[size:]
	}
	return out, nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *bytesText) UnmarshalText(b []byte) error {
	var out []byte
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] != '\\':
			out = append(out, b[i])
		case i+1 < len(b) && b[i+1] == '\\':
			out = append(out, '\\')
			i++
		case i+3 < len(b) && b[i+1] == 'x':
			v, err := strconv.ParseUint(string(b[i+2:i+4]), 16, 8)
			if err != nil {
				return fmt.Errorf("the text %q has an invalid escape", b)
			}
			out = append(out, byte(v))
			i += 3
		default:
			return fmt.Errorf("the text %q has an invalid escape", b)
		}
	}
	*t = bytesText(out)
	return nil
}

// mirror copies the fields of from to those of the same name, where a text of
// one side is a bytesText of the other. Both are pointers to structs; fields
// that only one of them has stay as they are.
func mirror(to, from any) {
	mirrorValue(reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem())
}

func mirrorValue(to, from reflect.Value) {
	switch {
	case from.CanConvert(to.Type()):
		to.Set(from.Convert(to.Type()))
	case from.Kind() == reflect.Slice && from.IsNil():
		to.SetZero()
	case from.Kind() == reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			mirrorValue(to.Index(i), from.Index(i))
		}
	default:
		for i := range to.NumField() {
			if field := from.FieldByName(to.Type().Field(i).Name); field.IsValid() {
				mirrorValue(to.Field(i), field)
			}
		}
	}
}

// unmarshal reads JSON of the form J into what it mirrors.
func unmarshal[J any](b []byte, what string, into any) error {
	var j J
	if err := strict(b, &j); err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	mirror(into, &j)
	return nil
}

// strict reads one JSON value and nothing else: a member unknown to this
// version may be what restricts an answer.
func strict(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("something follows it")
	}
	return nil
}

type jsonProcess struct {
	PID        int         `json:"pid,omitempty"`
	Exec       uint64      `json:"exec,omitempty"`
	Parent     int         `json:"parent,omitempty"`
	ParentExec uint64      `json:"parent_exec,omitempty"`
	Executable bytesText   `json:"executable,omitempty"`
	SHA256     string      `json:"sha256,omitempty"`
	Cwd        bytesText   `json:"cwd,omitempty"`
	Argv       []bytesText `json:"argv,omitempty"`
}

type jsonAttempt struct {
	Kind               event.Kind  `json:"kind"`
	Process            jsonProcess `json:"process"`
	ParentExecutable   bytesText   `json:"parent_executable,omitempty"`
	Path               bytesText   `json:"path,omitempty"`
	Script             bytesText   `json:"script,omitempty"`
	ScriptSHA256       string      `json:"script_sha256,omitempty"`
	Interpreted        []bytesText `json:"interpreted,omitempty"`
	Between            []bytesText `json:"between,omitempty"`
	Command            bool        `json:"command,omitempty"`
	Environment        []bytesText `json:"environment,omitempty"`
	EnvironmentUnknown bool        `json:"environment_unknown,omitempty"`
	Operation          string      `json:"operation,omitempty"`
	To                 bytesText   `json:"to,omitempty"`
	Host               bytesText   `json:"host,omitempty"`
	Port               int         `json:"port,omitempty"`
	Protocol           string      `json:"protocol,omitempty"`
	Method             bytesText   `json:"method,omitempty"`
	URLPath            bytesText   `json:"url_path,omitempty"`
	Known              bool        `json:"known,omitempty"`
	Name               bytesText   `json:"name,omitempty"`
	Agent              bytesText   `json:"agent,omitempty"`
	Tool               bytesText   `json:"tool,omitempty"`
	Server             bytesText   `json:"server,omitempty"`
	Arguments          bytesText   `json:"arguments,omitempty"`
	Cut                bool        `json:"cut,omitempty"`
}

type jsonAsker struct {
	PID        int         `json:"pid,omitempty"`
	Executable bytesText   `json:"executable,omitempty"`
	Argv       []bytesText `json:"argv,omitempty"`
}

type jsonRequest struct {
	ID       string      `json:"id"`
	Nonce    string      `json:"nonce"`
	Session  string      `json:"session"`
	Asked    time.Time   `json:"asked"`
	Expires  time.Time   `json:"expires"`
	Attempt  jsonAttempt `json:"attempt"`
	Chain    []jsonAsker `json:"chain,omitempty"`
	Rule     bytesText   `json:"rule,omitempty"`
	Reason   bytesText   `json:"reason,omitempty"`
	Digest   string      `json:"digest"`
	Count    int         `json:"count"`
	Writable bool        `json:"writable,omitempty"`
	Limited  string      `json:"limited,omitempty"`
	What     []Line      `json:"what,omitempty"`
}

// MarshalJSON writes r as docs/formats/approval.md says, with its description
// by Describe.
func (r Request) MarshalJSON() ([]byte, error) {
	j := jsonRequest{Limited: r.Limited(), What: Describe(r)}
	mirror(&j, &r)
	return canonical.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes; the description is made anew.
func (r *Request) UnmarshalJSON(b []byte) error {
	return unmarshal[jsonRequest](b, "a request for approval", r)
}
