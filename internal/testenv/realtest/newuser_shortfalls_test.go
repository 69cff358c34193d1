package realtest

// shortfall is a goal that is missed, with the reason. One that is reached again
// must go: it makes the test fail.
type shortfall struct {
	agent string // "" is each
	what  string // an action, or one of the goals below
	why   string
}

// shortfalls are what is missed today.
var shortfalls []shortfall

// Goals other than those of actions.
const (
	fewQuestions = "at most two questions"
	endsWell     = "ends with status 0"
	noAlerts     = "no alert at honest work"
	noFlags      = "no flag"
)
