package realtest

// shortfall is a goal that is missed, with the reason. One that is reached again
// must go: it makes the test fail.
type shortfall struct {
	agent string // "" is each
	what  string // an action, or one of the goals below
	why   string
}

// shortfalls are what is missed today.
var shortfalls = []shortfall{
	{"gemini", "commit as the user", "Gemini 0.61.0 gives git an empty configuration in its shell (GIT_CONFIG_GLOBAL=/dev/null), without a sandbox too"},
}

// Goals other than those of actions.
const (
	fewQuestions = "at most two questions"
	endsWell     = "ends with status 0"
	noAlerts     = "no alert at honest work"
	noFlags      = "no flag"
)
