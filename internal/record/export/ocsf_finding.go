package export

import (
	"cmp"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// titles are the titles of findings without a rule.
var titles = map[string]string{
	event.CredentialAlert: "Placeholder of a credential where it may not stand",
	event.HoneyRead:       "Honeytoken opened",
	event.HoneySent:       "Honeytoken on its way out",
}

// addFinding adds an alert, of a rule or of a sensor that needs none.
func (x *ocsf) addFinding(o *object, e event.Event) {
	title, rule := titles[e.Action], e.Action
	evidence := x.objects.next()
	switch e.Action {
	case event.AlertRaise:
		title, rule = orUnknown(x.mappedText(e, "title")), orUnknown(e.Object)
	case event.HoneyRead:
		evidence.obj("file", x.file(cmp.Or(e.Resolved, e.Object), 1))
	default:
		evidence.obj("dst_endpoint", x.endpoint(e.Object))
	}
	info := x.objects.next().str("uid", UID(e)).str("title", title).str("desc", x.mappedText(e, "explanation")).
		num("created_time", max(0, e.Time.UnixMilli())).
		obj("analytic", x.objects.next().str("uid", rule).str("name", title).num("type_id", 1).str("type", "Rule")).
		obj("product", x.product())
	if n, ok := x.mappedInt(e, "count"); ok {
		info.num("related_events_count", n)
	}
	if attacks := x.attacks(x.mappedText(e, "technique")); len(attacks) > 0 {
		info.list("attacks", attacks...)
	}
	if name := x.mappedText(e, "credential"); name != "" {
		o.list("resources", x.objects.next().str("name", name).str("type", "credential"))
	}
	o.obj("finding_info", info).set("is_alert", true)
	if p := x.process(e, true); p != nil {
		evidence.obj("process", p)
	}
	if len(evidence.fields) > 0 {
		o.list("evidences", evidence)
	}
}

// attacks are the techniques of MITRE ATT&CK in a list separated by commas or spaces.
func (x *ocsf) attacks(ids string) []*object {
	var all []*object
	for _, id := range strings.FieldsFunc(ids, func(r rune) bool { return r == ',' || r == ' ' }) {
		o := x.objects.next()
		technique, _, sub := strings.Cut(id, ".")
		if sub && !strings.HasPrefix(id, "AML.") { // the ids of ATLAS have a dot of their own
			o.obj("sub_technique", x.objects.next().str("uid", id))
		} else {
			technique = id
		}
		all = append(all, o.obj("technique", x.objects.next().str("uid", technique)))
	}
	return all
}
