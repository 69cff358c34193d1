package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// settingsFile is a JSON file of the program's in which the object at key holds
// variables. The program sets them for itself, so they count before the caller's.
type settingsFile struct {
	path   string
	key    string
	origin Origin
}

// setting is one of those variables.
type setting struct {
	value string
	file  string // on the host; "" if the value is not a text of a file
	key   string // in the file, with its name
}

func (d *presetDecoder) settingsFile(n *yaml.Node) {
	const label = "an entry of settings"
	s := settingsFile{origin: d.origin(n)}
	d.mapping(label, n, []field{
		d.textField(label, "file", &s.path, homePath),
		d.textField(label, "key", &s.key, keyPath),
	})
	if len(d.errs) == 0 && (s.path == "" || s.key == "") {
		d.fail(n, "for example {file: ~/.agent/settings.json, key: env}", "%s needs file and key", label)
	}
	d.preset.settings = append(d.preset.settings, s)
}

// readSettings reads the variables that the program sets for itself. A file that
// cannot be read has none, and the run says why.
func (a *agentPlan) readSettings() {
	a.settings = map[string]setting{}
	for _, s := range a.preset.settings {
		path := a.hostPath(s.path)
		data, err := readPolicy(path, a.host.UID, false)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			a.missing = append(a.missing, a.preset.Title+": its settings are not read: "+withHint(err))
		}
		if err != nil {
			continue
		}
		value, err := valueIn(data, s.key)
		clear(data)
		object, ok := value.(map[string]any)
		if err != nil || !ok {
			continue
		}
		a.obeyed = append(a.obeyed, obeyed{named{path, s.origin}, ""})
		for name, value := range object {
			switch v := value.(type) {
			case string:
				a.settings[name] = setting{v, path, s.key + "." + name}
			case json.Number, bool:
				a.settings[name] = setting{value: fmt.Sprint(v)}
			}
		}
	}
	for _, o := range a.preset.credentials {
		if o.Source.Kind == awsKeys && a.wanted(&o) && a.lookup("AWS_REGION") == "" && a.lookup("AWS_DEFAULT_REGION") == "" {
			a.settings["AWS_REGION"] = setting{value: a.awsSection(a.awsFiles()[1], a.awsProfile())["region"]}
		}
	}
}

// withHint is an error with what to type.
func withHint(err error) string {
	var e *Error
	if errors.As(err, &e) && e.hint != "" {
		return err.Error() + "; " + e.hint
	}
	return err.Error()
}

// filesObeyed are the files of the host that decided something; none without a preset.
func (a *agentPlan) filesObeyed() []obeyed {
	if a == nil {
		return nil
	}
	return a.obeyed
}

// find returns a variable as the program will see it.
func (a *agentPlan) find(name string) (value string, found bool) {
	if s, ok := a.settings[name]; ok {
		return s.value, true
	}
	return a.host.find(name)
}

// lookup is find for a variable that means nothing when it is empty.
func (a *agentPlan) lookup(name string) string {
	value, _ := a.find(name)
	return strings.TrimSpace(value)
}

// wanted reports whether the variable that switches a credential on is set to what
// programs take for yes.
func (a *agentPlan) wanted(o *offered) bool {
	return o.when == "" || slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(a.lookup(o.when)))
}

// hostTemplate is a host of a preset in which ${NAME|OTHER|text} stands for the first of
// the caller's variables that is set, or the text, which is in small letters.
type hostTemplate string

func parseHostTemplate(text string) (hostTemplate, error) {
	before, rest, found := strings.Cut(text, "${")
	words, after, closed := strings.Cut(rest, "}")
	if found && (!closed || words == "") {
		return "", fmt.Errorf("%q has no variable such as ${NAME|OTHER|text}", printable(text))
	}
	sample := text
	if found {
		sample = before + "x" + after
	}
	_, err := ParseHostPort(sample)
	return hostTemplate(text), err
}

// fillHost fills a host in; "" if no variable of it is set, or to what cannot be a part
// of a host's name.
func (a *agentPlan) fillHost(t hostTemplate) string {
	before, rest, found := strings.Cut(string(t), "${")
	if !found {
		return before
	}
	words, after, _ := strings.Cut(rest, "}")
	for word := range strings.SplitSeq(words, "|") {
		value := word
		if word == strings.ToUpper(word) {
			value = strings.ToLower(a.lookup(word))
		}
		if value != "" && strings.Trim(value, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
			return before + value + after
		}
	}
	return ""
}

// hostsOf are the hosts of a credential with the caller's variables filled in.
func (a *agentPlan) hostsOf(o *offered) []HostPort {
	hosts := slices.Clone(o.Hosts)
	for _, t := range o.hosts {
		h, err := ParseHostPort(a.fillHost(t))
		if err == nil && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}
