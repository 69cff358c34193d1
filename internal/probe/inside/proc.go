//go:build linux

package inside

func procActions() map[string]Action {
	return map[string]Action{}
}
