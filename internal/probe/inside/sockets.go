//go:build linux

package inside

func socketsActions() map[string]Action {
	return map[string]Action{}
}
