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

// Care is why a variable of the caller is not simply handed in.
type Care int

// The zero value is for a variable that needs none.
const (
	NoCare      Care = iota
	SecretName       // its name is that of a secret, or of a service that takes secrets by variables
	SecretValue      // its value has the shape of a known kind of secret
	HostSocket       // it leads to a helper of the host
	Loads            // it makes programs load or execute something
)

// Recognise says what care a variable needs, and the pattern of environment.yaml
// that its name matched; "" where the value alone decided. It is what
// environment.pass goes by.
func Recognise(name, value string) (c Care, pattern string) {
	e := environment()
	for _, kind := range []struct {
		care     Care
		patterns []string
	}{{HostSocket, e.HostSockets}, {SecretName, e.SecretNames}, {Loads, e.Dangerous}} {
		if p := matchName(kind.patterns, name); p != "" {
			if kind.care != SecretName && secretValue(value) {
				return SecretValue, p
			}
			return kind.care, p
		}
	}
	if secretValue(value) {
		return SecretValue, ""
	}
	return NoCare, ""
}
