package policy

import "sync"

// TrustVariables are what programs read the path of a bundle from, each measured or
// taken from the program's documentation. Wget knows none of them: for it the bundle is
// mounted over the distribution's.
var TrustVariables = []string{
	"AWS_CA_BUNDLE",
	"CARGO_HTTP_CAINFO",
	"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
	"CURL_CA_BUNDLE",
	"DENO_CERT",
	"GIT_SSL_CAINFO",
	"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
	"HEX_CACERTS_PATH",
	"HTTPLIB2_CA_CERTS",
	"NIX_SSL_CERT_FILE",
	"NODE_EXTRA_CA_CERTS",
	"NPM_CONFIG_CAFILE",
	"PIP_CERT",
	"REQUESTS_CA_BUNDLE",
	"SSL_CERT_FILE", // also read by uv
}

// environmentRules is environment.yaml.
type environmentRules struct {
	Ours         []string        `yaml:"ours"`
	SecretNames  []string        `yaml:"secret_names"`
	HostSockets  []string        `yaml:"host_sockets"`
	Dangerous    []string        `yaml:"dangerous"`
	SaysWho      []string        `yaml:"says_who"`
	SecretValues []secretPattern `yaml:"secret_values"`
}

// secretPattern is one kind of secret. Expressions are compiled when a value has one
// of the texts, which in nearly every run none has: all of them take as long
// as the rest of a policy.
type secretPattern struct {
	Has   []string `yaml:"has"`
	Shape string   `yaml:"shape"`
}

// passHint is what to do about a variable that is not handed in by its name.
func passHint(name string) string {
	if matchName(environment().HostSockets, name) == "" {
		return "give the value in full: --env " + printable(name) + "=VALUE, or environment.set"
	}
	for _, one := range [][2]string{
		{"SSH_*", "an ssh agent cannot be lent yet: fetch and push by ssh outside, or inside over https with a credential (holdfast grant add --help)"},
		{"GPG_*", "a key that signs cannot be lent yet: commit inside, and sign outside"},
		{"DOCKER_*", "a container engine cannot be lent: start the container outside, and reach it with --host-port PORT"},
		{"CONTAINER_HOST", "a container engine cannot be lent: start the container outside, and reach it with --host-port PORT"},
	} {
		if matchName([]string{one[0]}, name) != "" {
			return one[1]
		}
	}
	return "leave it out: what it leads to is not in view, and cannot be lent yet"
}

var environment = sync.OnceValue(environmentTable)
