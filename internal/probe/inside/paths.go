//go:build linux

package inside

func pathsActions() map[string]Action {
	return map[string]Action{}
}
