//go:build linux

package inside

func syscallsActions() map[string]Action {
	return map[string]Action{}
}
