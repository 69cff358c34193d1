//go:build linux

package inside

func environmentActions() map[string]Action {
	return map[string]Action{}
}
