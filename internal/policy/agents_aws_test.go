package policy

import (
	"fmt"
	"strings"
	"testing"
)

// TestAWSProfiles: where the keys of a profile come from. No file counts that is found
// from the working directory, which is the workspace, and none that can be changed inside.
func TestAWSProfiles(t *testing.T) {
	const process = "[profile dev]\ncredential_process = /usr/bin/python3 -c x\nregion = eu-west-1\n"
	const static = "[dev]\naws_access_key_id = AKIAAAAAAAAAAAAAAAAA\naws_secret_access_key = ssssssssssssssssssssssssssssssssssssssss\n"
	const role = "[profile dev]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = dev\ncredential_process = /usr/bin/python3 -c x\n"
	for _, row := range []struct{ name, env, settings, config, keys, want string }{
		{"a process", "", "", process, "", "command /usr/bin/python3 eu-west-1"},
		{"keys", "", "", "", static, "file"},
		{"a whole path", "AWS_CONFIG_FILE=ROOT/outside/config", "", "", "", "command /usr/bin/python3 eu-west-1"},
		{"a relative path", "AWS_CONFIG_FILE=config", "", "", "", "AWS_CONFIG_FILE is not an absolute path"},
		{"a relative path with keys elsewhere", "AWS_CONFIG_FILE=config", "", "", static, "AWS_CONFIG_FILE is not an absolute path"},
		{"a relative path to keys", "AWS_SHARED_CREDENTIALS_FILE=./config", "", process, "", "AWS_SHARED_CREDENTIALS_FILE is not an absolute path"},
		{"a relative path of settings", "", `"AWS_CONFIG_FILE": "config"`, "", "", "AWS_CONFIG_FILE is not an absolute path"},
		{"a relative path under one of settings", "AWS_CONFIG_FILE=config", `"AWS_CONFIG_FILE": "ROOT/outside/config"`, "", "", "AWS_CONFIG_FILE is not an absolute path"},
		{"a path with ..", "AWS_CONFIG_FILE=ROOT/outside/../outside/config", "", "", "", "AWS_CONFIG_FILE is not an absolute path"},
		{"a file of the workspace", "AWS_CONFIG_FILE=ROOT/home/u/ws/config", "", "", "", "in view inside"},
		{"a file of the workspace under one of settings", "AWS_CONFIG_FILE=ROOT/home/u/ws/config", `"AWS_CONFIG_FILE": "ROOT/outside/config"`, "", "", "in view inside"},
		{"a file to come in the workspace", "AWS_SHARED_CREDENTIALS_FILE=ROOT/home/u/ws/none", "", process, "", "in view inside"},
		{"a role", "", "", role, static, "needs the program aws"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			in := func(text string) string { return strings.ReplaceAll(text, "ROOT", w.root) }
			w.write("home/u/ws/config", process, 0o600)
			w.write("outside/config", process, 0o600)
			w.write("home/u/.claude/settings.json", `{"env": {`+in(row.settings)+`}}`, 0o600)
			if row.config != "" {
				w.write("home/u/.aws/config", row.config, 0o600)
			}
			if row.keys != "" {
				w.write("home/u/.aws/credentials", row.keys, 0o600)
			}
			w.host.Env = []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_PROFILE=dev", in(row.env)}
			o := Options{Host: w.host, Preset: "claude"}
			o.Host.Dir = w.at("home/u/ws")
			t.Chdir(o.Host.Dir)
			p, err := w.compile(o)
			got := fmt.Sprint(err)
			if err == nil {
				region, _ := variableOf(p, "AWS_REGION")
				got = strings.Join(p.Agent.Missing, "; ") + region
				for _, c := range p.Credentials {
					got = fmt.Sprintf("%s %s %s", c.Source.Kind, strings.Join(c.Source.Argv[:min(1, len(c.Source.Argv))], ""), region)
				}
			}
			if !strings.Contains(got, row.want) || row.name == "a relative path" && strings.Contains(got, "eu-west-1") {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

// TestAWSWithoutKeys: what only the program of AWS finds, such as the role of a machine, it
// is asked for without a profile, unless there is one by name.
func TestAWSWithoutKeys(t *testing.T) {
	const asked = "aws configure export-credentials --format process"
	for _, row := range []struct{ name, env, config, want string }{
		{"a role of the machine", "PATH=ROOT/bin", "", asked + "]"},
		{"a region alone", "PATH=ROOT/bin", "[default]\nregion = eu-west-1\n", asked + "]"},
		{"the token of a web identity", "PATH=ROOT/bin AWS_WEB_IDENTITY_TOKEN_FILE=ROOT/outside/token", "", asked + "]"},
		{"a token in the workspace", "PATH=ROOT/bin AWS_WEB_IDENTITY_TOKEN_FILE=ROOT/home/u/ws/token", "", "in view inside"},
		{"a token of a container in the workspace", "PATH=ROOT/bin AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=ROOT/home/u/ws/token", "", "in view inside"},
		{"a profile", "PATH=ROOT/bin AWS_PROFILE=dev", "[profile dev]\nregion = eu-west-1\n", asked + " --profile dev]"},
		{"a profile that is nowhere", "PATH=ROOT/bin AWS_PROFILE=dev", "", "the AWS profile dev is not in"},
		{"no program", "PATH=ROOT/none", "", "a role of this machine needs the program aws"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.tool("bin/aws")
			w.write("home/u/.aws/config", row.config, 0o600)
			w.host.Env = append(strings.Fields(strings.ReplaceAll(row.env, "ROOT", w.root)), "CLAUDE_CODE_USE_BEDROCK=1")
			p, err := w.compile(Options{Host: w.host, Preset: "claude"})
			got := fmt.Sprint(err)
			if err == nil {
				got = strings.Join(p.Agent.Missing, "; ")
				for _, c := range p.Credentials {
					got += fmt.Sprint(c.Source.Argv)
				}
			}
			if !strings.Contains(got, row.want) {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}
