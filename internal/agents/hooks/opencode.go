package hooks

import (
	_ "embed"
	"encoding/json"
	"strconv"
	"strings"
)

//go:embed opencode.js
var opencodePlugin string

// opencodeFile is a plugin: opencode has no hooks that are programs.
func opencodeFile(hook string) []byte {
	plugin := strings.NewReplacer(`"HOOK"`, jsonText(hook), `"CALLTIME"`, strconv.Itoa(callTime)).Replace(opencodePlugin)
	return []byte("// " + ownMark + ": reports tool calls; see holdfast hooks --help\n" + plugin)
}

// jsonText is s as JSON, which is JavaScript too.
func jsonText(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // a string always can be
		return `""`
	}
	return string(b)
}
