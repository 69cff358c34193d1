package credentials

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

const (
	jwtSignature = 342                 // letters of an RSA signature of 256 bytes
	jwtNeedle    = 64                  // of them that are searched for: the last
	insideLasts  = 30 * 24 * time.Hour // what the program inside believes of its tokens: it has no reason to renew them
)

// makeInside makes the placeholders of a login and the file that the program finds.
func (h *holder) makeInside(s *loginSource) error {
	if h.cred.Inside == nil {
		return nil
	}
	t, err := s.readFirst()
	if err != nil {
		return h.refuse("its login", err)
	}
	f, p, r, ends := h.cred.Inside, &h.placeholders, s.renewal, s.now().Add(insideLasts)
	stand := func(key, real, other string) string {
		if claims := jwtClaims(real); claims != nil {
			return jwtPlaceholder(claims, f.Claims[key], ends)
		}
		return other
	}
	p.value = stand(s.key, t.access, p.value)
	out := map[string]any{}
	for _, key := range f.Keep {
		if value := valueAt(t.data, key); value != nil {
			put(out, key, value)
		}
	}
	for _, key := range append([]string{s.key}, f.Also...) {
		put(out, key, p.value)
	}
	if r.Refresh != "" {
		p.refresh = random(min(max(len(t.refresh), 40), 200), alphanumeric)
		put(out, r.Refresh, p.refresh)
	}
	if r.ID != "" && t.id != "" {
		p.id = stand(r.ID, t.id, random(40, alphanumeric))
		put(out, r.ID, p.id)
	}
	if r.Ends != "" {
		put(out, r.Ends, ends.UnixMilli())
	}
	for _, v := range []string{p.value, p.refresh, p.id} {
		h.broker.config.reportHeld("placeholder-"+h.cred.Name, v)
	}
	if f.Variable != "" {
		h.text = out
		return nil
	}
	content, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("making %s: %w", f.Path, err)
	}
	h.file = &policy.AgentFile{Path: f.Path, Content: string(content) + "\n", Writable: true, Origin: h.cred.Origin}
	return nil
}

// readFirst is read at the start, once more if the program outside is writing the file.
func (s *loginSource) readFirst() (tokens, error) {
	t, err := s.read()
	if errors.Is(err, errNoJSON) {
		s.wait(policy.WriteTime)
		return s.read()
	}
	return t, err
}

// jwtPlaceholder is a JWT with some claims of another one, which ends at a time. Its
// signature is random.
func jwtPlaceholder(real map[string]json.RawMessage, keep []string, ends time.Time) string {
	claims := map[string]any{}
	for _, claim := range keep {
		way := strings.Fields(claim)
		value := real[way[0]]
		for _, name := range way[1:] {
			var object map[string]json.RawMessage
			if json.Unmarshal(value, &object) != nil {
				value = nil
				break
			}
			value = object[name]
		}
		if value != nil {
			putAt(claims, way, value)
		}
	}
	claims["exp"] = ends.Unix()
	payload, _ := json.Marshal(claims) // of JSON that was decoded
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(payload) + "." + random(jwtSignature, urlSafe)
}

// valueAt is the JSON at a key; nil where there is none.
func valueAt(data []byte, key string) json.RawMessage {
	value := json.RawMessage(data)
	for part := range strings.SplitSeq(key, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(value, &object) != nil {
			return nil
		}
		value = object[part]
	}
	return value
}

// put sets the value at a key of a JSON object.
func put(object map[string]any, key string, value any) {
	putAt(object, strings.Split(key, "."), value)
}

func putAt(object map[string]any, way []string, value any) {
	for _, part := range way[:len(way)-1] {
		below, ok := object[part].(map[string]any)
		if !ok {
			below = map[string]any{}
			object[part] = below
		}
		object = below
	}
	object[way[len(way)-1]] = value
}

// texts are the variables that hold logins. Several logins can be in one: each is under
// a name of its own.
func (b *Broker) texts() (out []policy.Env) {
	all := map[string]map[string]any{}
	for _, h := range b.order {
		if h.text == nil {
			continue
		}
		name := h.cred.Inside.Variable
		if all[name] == nil {
			all[name] = map[string]any{}
		}
		maps.Copy(all[name], h.text)
		text, _ := json.Marshal(all[name]) // of JSON that was decoded, and texts
		out = slices.DeleteFunc(out, func(e policy.Env) bool { return e.Name == name })
		out = append(out, policy.Env{Name: name, Value: string(text), Origin: h.cred.Origin})
	}
	return out
}

// Files are what programs find inside instead of login files.
func (b *Broker) Files() []policy.AgentFile {
	var out []policy.AgentFile
	for _, h := range b.order {
		if h.file != nil {
			out = append(out, *h.file)
		}
	}
	return out
}
