//go:build linux

package inside

func gitActions() map[string]Action {
	return map[string]Action{}
}
