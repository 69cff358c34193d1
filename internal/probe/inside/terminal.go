//go:build linux

package inside

func terminalActions() map[string]Action {
	return map[string]Action{}
}
