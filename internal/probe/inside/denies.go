//go:build linux

package inside

func deniesActions() map[string]Action {
	return map[string]Action{}
}
