//go:build linux

package inside

func exhaustionActions() map[string]Action {
	return map[string]Action{}
}
