package credentials

import (
	"context"
	"fmt"
	"path/filepath"

	"holdfast.dev/holdfast/internal/policy"
)

// fileSource is a file of the user, read at each fetch.
type fileSource struct {
	path, sign string
	options    map[string]string // where in the file the secret is: see policy.SecretIn
	writable   []string
}

func newFileSource(c policy.Credential, config Config) (source, error) {
	if !filepath.IsAbs(c.Source.Value) {
		return nil, fmt.Errorf("file needs an absolute path, not %q", c.Source.Value)
	}
	return &fileSource{path: c.Source.Value, sign: c.Sign, options: c.Source.Options, writable: config.Writable}, nil
}

func (s *fileSource) fetch(context.Context) (*result, error) {
	data, err := s.read()
	if err != nil {
		return nil, err
	}
	if len(s.options) == 0 {
		return resultOf(data, s.sign)
	}
	defer clear(data)
	if s.sign == signAWS {
		return s.keys(data)
	}
	value, err := policy.SecretIn(data, s.options)
	if err != nil {
		return nil, &fetchError{text: s.path + " cannot be used", cause: err, hint: "log in once more with the program that the file belongs to"}
	}
	return resultOf(value, s.sign)
}

// keys takes the keys of AWS out of a file: of a profile, or three values side by side.
func (s *fileSource) keys(data []byte) (*result, error) {
	var got [3]string
	if profile := s.options["profile"]; profile != "" {
		section := policy.AWSProfile(data, profile)
		got = [3]string{section["aws_access_key_id"], section["aws_secret_access_key"], section["aws_session_token"]}
	} else {
		for i, key := range awsNames(s.options["key"]) {
			value, _ := policy.SecretIn(data, map[string]string{"key": key}) // none is none
			got[i] = string(value)
		}
	}
	if got[0] == "" || got[1] == "" {
		return nil, &fetchError{text: s.path + " has no AWS keys any more", hint: "log in once more with the program that the file belongs to"}
	}
	return awsKeys(got[0], got[1], got[2]), nil
}

func (s *fileSource) read() ([]byte, error) {
	most := int64(longest + 2)
	if len(s.options) > 0 { // the secret is a part of it
		most = policy.MaxFile
	}
	return Unchangeable(s.writable)(s.path, most)
}
