// Package honey makes fake credentials and reports when one is touched. They are where
// an attacker looks for credentials, and where no honest program of an ordinary run
// looks by itself: a touch needs no judgement. Their values are random, new in each
// run, and exist nowhere else, so that one which is seen on its way out was read here.
package honey

import (
	"fmt"
	"io/fs"
	"path/filepath"
)

// File is a fake credential.
type File struct {
	Kind    string // such as "aws"
	Path    string // absolute, inside
	Content []byte
	Mode    fs.FileMode // permission bits
	Readers string      // the programs that read it by themselves when they are used; "" for none
	Secrets []string    // random texts of 16 bytes or more in the content
}

// Details returns what an event about f says of it.
func (f File) Details() map[string]string {
	d := map[string]string{"kind": f.Kind}
	if f.Readers != "" {
		d["readers"] = f.Readers
	}
	return d
}

// decoy is how one kind of file is made.
type decoy struct {
	kind    string
	path    string // below the home directory
	readers string
	make    func(*draw) (content string, secrets []string)
}

// decoys are chosen by two rules. No program behaves differently because one is
// there: none is a default that a program would use. And none is read by what
// is run in nearly every session (shells, git, ssh, curl, npm, pip, go, cargo,
// the common libraries): so there is no ~/.netrc, ~/.npmrc, ~/.ssh/id_rsa,
// ~/.docker/config.json, ~/.kube/config, ~/.config/gh/hosts.yml or ~/.pgpass.
var decoys = []decoy{
	// The first file that attackers look for. The programs of AWS read it to
	// know its profiles, and use only one that is called default.
	{"aws", ".aws/credentials", "aws, terraform and programs with an AWS SDK (boto3)", awsCredentials},
	// Git reads it only if credential.helper is set to store, which it is not inside.
	{"github", ".git-credentials", "git with credential.helper=store", gitCredentials},
	// Not the name of a default identity of ssh(1).
	{"ssh", ".ssh/id_ed25519_deploy", "", sshKey},
	// Only for uploads; pip reads another file.
	{"pypi", ".pypirc", "twine and setuptools, to upload", pypirc},
	// Kubectl reads ~/.kube/config and what KUBECONFIG names.
	{"kubernetes", ".kube/config-prod", "", kubeConfig},
	// The libraries read application_default_credentials.json, two levels above.
	{"gcp", ".config/gcloud/legacy_credentials/deploy@corp.internal/adc.json", "gcloud, with that account chosen", gcloudADC},
	// The program uses it if VAULT_TOKEN is not set.
	{"vault", ".vault-token", "vault and bao without VAULT_TOKEN", vaultToken},
	{"stripe", ".config/stripe/config.toml", "stripe", stripeConfig},
	// Wallet thieves look for it; only geth reads it.
	{"wallet", ".ethereum/keystore/UTC--2024-03-07T10-22-41.318274000Z--", "geth", keystore},
}

// Files makes the fake credentials of one run, for a home directory.
func Files(home string) ([]File, error) {
	if !filepath.IsAbs(home) {
		return nil, fmt.Errorf("making honeytokens: %q is not an absolute path", home)
	}
	d := &draw{}
	out := make([]File, 0, len(decoys))
	for _, k := range decoys {
		content, secrets := k.make(d)
		f := File{Kind: k.kind, Path: filepath.Join(home, k.path), Content: []byte(content), Mode: 0o600, Readers: k.readers, Secrets: secrets}
		if k.kind == "wallet" {
			f.Path += secrets[1] // the address, as geth names its files
		}
		out = append(out, f)
	}
	return out, nil
}
