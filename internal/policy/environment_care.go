package policy

import "sync"

// care is environment.yaml.
type care struct {
	Ours         []string `yaml:"ours"`
	SecretNames  []string `yaml:"secret_names"`
	HostSockets  []string `yaml:"host_sockets"`
	Dangerous    []string `yaml:"dangerous"`
	SecretValues []shaped `yaml:"secret_values"`
}

// shaped is one kind of secret. Expressions are compiled when a value has one
// of the texts, which in nearly every run none has: all of them take as long
// as the rest of a policy.
type shaped struct {
	Has   []string `yaml:"has"`
	Shape string   `yaml:"shape"`
}

var environment = sync.OnceValue(environmentTable)
