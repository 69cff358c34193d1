//go:build linux

package inside

func racesActions() map[string]Action {
	return map[string]Action{}
}
