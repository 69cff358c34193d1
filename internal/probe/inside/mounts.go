//go:build linux

package inside

func mountsActions() map[string]Action {
	return map[string]Action{}
}
