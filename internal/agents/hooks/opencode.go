package hooks

import (
	_ "embed"
	"encoding/json"
	"strconv"
	"strings"
)

//go:embed opencode.js
var opencodePlugin string

// opencodeFile is a plugin, because opencode cannot execute programs as hooks.
func opencodeFile(hook string) []byte {
	plugin := strings.NewReplacer(`"HOOK"`, jsonText(hook), `"CALLTIME"`, strconv.Itoa(callTime)).Replace(opencodePlugin)
	return []byte("// " + ownMark + ": reports tool calls; see holdfast hooks --help\n" + plugin)
}

// jsonText is s as JSON, which is also JavaScript.
func jsonText(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // impossible for a string
		return `""`
	}
	return string(b)
}
