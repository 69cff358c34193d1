package policy

import "sync"

// environmentRules is environment.yaml.
type environmentRules struct {
	Ours         []string        `yaml:"ours"`
	SecretNames  []string        `yaml:"secret_names"`
	HostSockets  []string        `yaml:"host_sockets"`
	Dangerous    []string        `yaml:"dangerous"`
	SecretValues []secretPattern `yaml:"secret_values"`
}

// secretPattern is one kind of secret. Expressions are compiled when a value has one
// of the texts, which in nearly every run none has: all of them take as long
// as the rest of a policy.
type secretPattern struct {
	Has   []string `yaml:"has"`
	Shape string   `yaml:"shape"`
}

var environment = sync.OnceValue(environmentTable)
