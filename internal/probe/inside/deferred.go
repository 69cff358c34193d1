//go:build linux

package inside

func deferredActions() map[string]Action {
	return map[string]Action{}
}
