package policy

import "slices"

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

// Executed lists the paths in a home, relative to it, that the account executes
// or obeys later without being asked. A new slice each time.
func Executed() []string { return slices.Clone(embeddedToolchains().Executed) }

// SystemSecrets lists the system's own secrets, as absolute paths. A new slice
// each time.
func SystemSecrets() []string { return slices.Clone(embeddedToolchains().Secret) }
