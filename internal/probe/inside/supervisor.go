//go:build linux

package inside

func supervisorActions() map[string]Action {
	return map[string]Action{}
}
