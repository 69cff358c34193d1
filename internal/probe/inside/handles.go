//go:build linux

package inside

func handlesActions() map[string]Action {
	return map[string]Action{}
}
