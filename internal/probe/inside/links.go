//go:build linux

package inside

func linksActions() map[string]Action {
	return map[string]Action{}
}
