//go:build linux

package inside

func privilegeActions() map[string]Action {
	return map[string]Action{}
}
