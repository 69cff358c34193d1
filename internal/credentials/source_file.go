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
	value, err := policy.SecretIn(data, s.options)
	if err != nil {
		return nil, &fetchError{text: s.path + " cannot be used", cause: err, hint: "log in once more with the program that the file belongs to"}
	}
	return resultOf(value, s.sign)
}

func (s *fileSource) read() ([]byte, error) {
	most := int64(longest + 2)
	if len(s.options) > 0 { // the secret is a part of it
		most = policy.MaxFile
	}
	return ReadUnchangeable(s.path, s.writable, most)
}
