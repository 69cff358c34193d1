package policy

import (
	"fmt"
	"strings"
)

// credentialName checks how a policy calls a credential.
func credentialName(text string) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	if text == "" || len(text) > 64 || strings.Trim(text, letters+"-_") != "" || strings.ContainsAny(text[:1], "-_") {
		return fmt.Errorf("%q is not the name of a credential: letters, digits, - and _, at most 64", printable(text))
	}
	return nil
}
