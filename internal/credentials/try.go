package credentials

import (
	"context"
	"errors"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// Trial is what a source gave, without the secret.
type Trial struct {
	Kind    string    `json:"kind"`
	Length  int       `json:"length"`           // bytes; of aws-sigv4 those of the secret key
	Hash    string    `json:"hash"`             // as in the records of uses
	Expires time.Time `json:"expires,omitzero"` // as the source says; zero when it does not
	Revoked bool      `json:"revoked"`          // it was made for the trial, and ended again
}

// Try fetches the secret of a credential once, describes the result, and ends
// the secret upstream if it was made for this. No use is counted.
func Try(ctx context.Context, cred policy.Credential, c Config) (Trial, error) {
	c.Credentials, c.Sink, c.Unset, c.Grants = []policy.Credential{cred}, nil, nil, ""
	b, err := New(c)
	if err != nil {
		return Trial{}, err
	}
	h := b.holders[cred.Name]
	l, err := h.current(ctx)
	if err != nil {
		return Trial{}, errors.Join(err, b.Close())
	}
	secret := l.got().secret()
	t := Trial{Kind: cred.Source.Kind, Length: len(secret.Value), Hash: l.hash, Expires: l.got().expires, Revoked: l.got().revoke != nil}
	if cred.Sign != "" {
		t.Length = len(secret.Fields[policy.SecretKey])
	}
	return t, b.Close()
}
