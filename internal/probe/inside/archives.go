//go:build linux

package inside

func archivesActions() map[string]Action {
	return map[string]Action{}
}
