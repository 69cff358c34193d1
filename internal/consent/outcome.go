package consent

// Outcome is the outcome of something that a rule of consent was about.
type Outcome struct {
	What    string // what would have happened, or did
	Allowed bool
	How     string // answer, timeout, nobody, limit and so on; "" of a rule that denied without asking
	By      string // who answered
	Reason  string // in words
	Rule    string // as file:line
	Count   int    // how often
}

// Why is the reason for the outcome, in words.
func (o Outcome) Why() string {
	text := outcomeWords(o.How)
	switch {
	case o.How == "answer" && o.Reason != "":
		return "by " + o.By + ": " + o.Reason
	case o.How == "answer":
		return "by " + o.By
	case text != "":
		return text
	case o.Reason != "":
		return o.Reason
	}
	return "by a rule"
}

// OutcomeIgnored is the How of an answer that does not count: the request keeps waiting.
const OutcomeIgnored = "ignored"

// outcomeWords says how a request without an answer ended; "" for the rest.
func outcomeWords(outcome string) string {
	switch outcome {
	case "timeout":
		return "nobody answered in time"
	case "nobody":
		return "this run asks nobody"
	case "gone":
		return "the asking program did not wait"
	case "closed":
		return "the run ended first"
	case "limit":
		return "too much was asked"
	case "record":
		return "it could not be recorded"
	case "more":
		return "not listed"
	case OutcomeIgnored:
		return "an answer that was ignored"
	}
	return ""
}

// Denied reports whether it did not happen because of this outcome.
func (o Outcome) Denied() bool { return !o.Allowed && o.How != OutcomeIgnored }
