//go:build linux

package inside

func credentialsActions() map[string]Action {
	return map[string]Action{}
}
