package consent

import (
	"time"

	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/floor/event"
)

// seconds is a time span in JSON, as in 15m0s.
type seconds time.Duration

// MarshalText implements encoding.TextMarshaler.
func (s seconds) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *seconds) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	*s = seconds(d)
	return err
}

type jsonAnswer struct {
	Session   string    `json:"session"`
	Request   string    `json:"request,omitempty"`
	Nonce     string    `json:"nonce,omitempty"`
	Digest    string    `json:"digest,omitempty"`
	Grant     string    `json:"grant,omitempty"`
	Allow     bool      `json:"allow"`
	Scope     Scope     `json:"scope,omitempty"`
	For       seconds   `json:"for,omitzero"`
	Directory bool      `json:"directory,omitempty"`
	Uses      int       `json:"uses,omitempty"`
	Reason    bytesText `json:"reason,omitempty"`
	By        bytesText `json:"by"`
	Via       bytesText `json:"via,omitempty"`
	At        time.Time `json:"at,omitzero"`
}

// MarshalJSON writes a as docs/formats/approval.md says.
func (a Answer) MarshalJSON() ([]byte, error) {
	var j jsonAnswer
	mirror(&j, &a)
	return canonical.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Answer) UnmarshalJSON(b []byte) error { return unmarshal[jsonAnswer](b, "an answer", a) }

type jsonSigned struct {
	Answer    Answer `json:"answer"`
	Key       []byte `json:"key"`
	Signature []byte `json:"signature"`
}

// MarshalJSON writes s as docs/formats/approval.md says.
func (s Signed) MarshalJSON() ([]byte, error) { return canonical.Marshal(jsonSigned(s)) }

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Signed) UnmarshalJSON(b []byte) error {
	return unmarshal[jsonSigned](b, "a signed answer", s)
}

type jsonCovers struct {
	Kind         event.Kind  `json:"kind"`
	Executable   bytesText   `json:"executable,omitempty"`
	SHA256       string      `json:"sha256,omitempty"`
	Argv         []bytesText `json:"argv,omitempty"`
	Cwd          bytesText   `json:"cwd,omitempty"`
	Parent       bytesText   `json:"parent,omitempty"`
	Script       bytesText   `json:"script,omitempty"`
	ScriptSHA256 string      `json:"script_sha256,omitempty"`
	Interpreted  []bytesText `json:"interpreted,omitempty"`
	Environment  []bytesText `json:"environment,omitempty"`
	Path         bytesText   `json:"path,omitempty"`
	Directory    bool        `json:"directory,omitempty"`
	Operation    string      `json:"operation,omitempty"`
	To           bytesText   `json:"to,omitempty"`
	Host         bytesText   `json:"host,omitempty"`
	Port         int         `json:"port,omitempty"`
	Protocol     string      `json:"protocol,omitempty"`
	Method       bytesText   `json:"method,omitempty"`
	URLPath      bytesText   `json:"url_path,omitempty"`
	Name         bytesText   `json:"name,omitempty"`
	Agent        bytesText   `json:"agent,omitempty"`
	Server       bytesText   `json:"server,omitempty"`
	Tool         bytesText   `json:"tool,omitempty"`
	Arguments    string      `json:"arguments,omitempty"`
}

type jsonGrant struct {
	ID        string     `json:"id"`
	Session   string     `json:"session"`
	Covers    jsonCovers `json:"covers"`
	Words     string     `json:"words"`
	Rule      bytesText  `json:"rule,omitempty"`
	Request   string     `json:"request"`
	Scope     Scope      `json:"scope"`
	Begun     time.Time  `json:"begun"`
	Expires   time.Time  `json:"expires,omitzero"`
	Uses      int        `json:"uses"`
	Used      int        `json:"used"`
	By        bytesText  `json:"by"`
	Via       bytesText  `json:"via,omitempty"`
	Reason    bytesText  `json:"reason,omitempty"`
	Signature []byte     `json:"signature"`
}

// MarshalJSON writes g as docs/formats/approval.md says.
func (g Grant) MarshalJSON() ([]byte, error) {
	j := jsonGrant{Words: g.Covers.Words()}
	mirror(&j, &g)
	return canonical.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (g *Grant) UnmarshalJSON(b []byte) error { return unmarshal[jsonGrant](b, "an approval", g) }
