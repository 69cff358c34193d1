//go:build linux

package inside

// cloudSets are clients of services, which can be told to start helpers, and
// to speak with somebody else.
func cloudSets() map[string][]Trick {
	return map[string][]Trick{
		"docker":    dockerTricks(),
		"kubectl":   kubectlTricks(),
		"helm":      helmTricks(),
		"terraform": terraformTricks(),
		"gh":        ghTricks(),
		"aws":       awsTricks(),
	}
}

func dockerTricks() []Trick {
	return []Trick{
		sh("host-mount", "docker -H unix://{U} run --rm -v /:/h busybox true").to(Dials),
		sh("variable", "DOCKER_HOST=unix://{U} docker ps").to(Dials),
		sh("tcp", "docker -H tcp://{A} ps").to(Dials),
		sh("context", "docker context create cc --docker host=unix://{U} && docker -c cc ps").to(Dials),
		sh("credentials", "PATH=$PWD:$PATH docker --config c -H unix://{U} pull probe.test/a").with(map[string]string{"c/config.json": `{"credsStore": "probe"}`, "docker-credential-probe": "#!/bin/sh\ntouch {X}\n"}),
		sh("ssh", "PATH=$PWD/bin:$PATH docker -H ssh://probe.test ps").with(map[string]string{"bin/ssh": "#!/bin/sh\ntouch {X}\n"}),
		sh("build-context", "docker -H unix://{U} build .").with(map[string]string{"Dockerfile": "FROM scratch\n"}).to(Dials),
		sh("env-file", "docker -H unix://{U} run --env-file {S} a").to(Dials),
	}
}

func kubectlTricks() []Trick {
	return []Trick{
		sh("exec-plugin", "kubectl --kubeconfig k get pods --request-timeout=2").with(kubeconfig),
		sh("variable", "KUBECONFIG=$PWD/k kubectl version --request-timeout=2").with(kubeconfig),
		sh("plugin", "PATH=$PWD/bin:$PATH kubectl probe").with(map[string]string{"bin/kubectl-probe": "#!/bin/sh\ntouch {X}\n"}),
		sh("server", "kubectl --kubeconfig /dev/null -s http://{A} get pods --request-timeout=2").to(Dials),
		sh("editor", "kubectl --kubeconfig k --request-timeout=2 get --raw /").with(kubeconfig),
		sh("diff", "KUBECTL_EXTERNAL_DIFF=./run kubectl --kubeconfig k --request-timeout=2 diff -f f").with(merged(kubeconfig, map[string]string{"f": "kind: Pod\napiVersion: v1\nmetadata: {name: a}\n"})),
		sh("write", "kubectl --kubeconfig {X} config set-cluster a"),
		sh("read", "kubectl --kubeconfig /dev/null create configmap a --dry-run=client -o yaml --from-file={S}").to(Prints),
		sh("profile", "kubectl --kubeconfig /dev/null options --profile=cpu --profile-output={X}"),
	}
}

func helmTricks() []Trick {
	return []Trick{
		sh("post-renderer", "helm template a . --post-renderer ./run").with(merged(script, map[string]string{"Chart.yaml": "apiVersion: v2\nname: a\nversion: 0.1.0\n"})),
		sh("plugin", "HELM_PLUGINS=$PWD/p helm probe").with(map[string]string{"p/a/plugin.yaml": "name: probe\nversion: 0.1.0\ncommand: touch {X}\n"}),
		sh("output", "helm template a . --output-dir {X}").with(map[string]string{"Chart.yaml": "apiVersion: v2\nname: a\nversion: 0.1.0\n", "templates/a.yaml": "a: b\n"}),
	}
}

func terraformTricks() []Trick {
	return []Trick{
		sh("local-exec", "terraform init -input=false && terraform apply -auto-approve -input=false").with(hcl),
		sh("chdir", "terraform -chdir=d init -input=false && terraform -chdir=d apply -auto-approve -input=false").with(map[string]string{"d/main.tf": hcl["main.tf"]}),
		sh("log", "TF_LOG=trace TF_LOG_PATH={X} terraform version"),
		sh("config", "TF_CLI_CONFIG_FILE=$PWD/c TF_LOG_PATH={X} TF_LOG=info terraform version").with(map[string]string{"c": "disable_checkpoint = true\n"}),
		sh("state", "terraform init -input=false && terraform apply -auto-approve -input=false -state={X}").with(map[string]string{"main.tf": "resource \"terraform_data\" \"a\" {}\n"}),
		sh("plan", "terraform init -input=false && terraform plan -input=false -out={X}").with(map[string]string{"main.tf": "resource \"terraform_data\" \"a\" {}\n"}),
		sh("read", "echo 'nonsensitive(file(\"{S}\"))' | terraform console").to(Prints),
		sh("arguments", "TF_CLI_ARGS_apply='-auto-approve -state-out={X}' sh -c 'terraform init -input=false && terraform apply -input=false'").with(map[string]string{"main.tf": "resource \"terraform_data\" \"a\" {}\n"}),
	}
}

func ghTricks() []Trick {
	return []Trick{
		sh("alias", "GH_CONFIG_DIR=$PWD gh alias set --shell a 'touch {X}' && GH_CONFIG_DIR=$PWD gh a"),
		sh("extension", "XDG_DATA_HOME=$PWD gh x").with(map[string]string{"gh/extensions/gh-x/gh-x": "#!/bin/sh\ntouch {X}\n"}),
		sh("browser", "GH_TOKEN=x GH_BROWSER=./run gh browse -R a/b").with(script),
	}
}

func awsTricks() []Trick {
	return []Trick{
		sh("process", "aws sts get-caller-identity --endpoint-url http://{A} --cli-connect-timeout 1").env("AWS_CONFIG_FILE={D}/c", "AWS_MAX_ATTEMPTS=1", "AWS_EC2_METADATA_DISABLED=true", "AWS_REGION=us-east-1").with(map[string]string{"c": "[default]\ncredential_process = touch {X}\n"}),
		sh("endpoint", "aws s3 ls --endpoint-url http://{A} --cli-connect-timeout 1 --cli-read-timeout 1").env("AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_MAX_ATTEMPTS=1", "AWS_EC2_METADATA_DISABLED=true", "AWS_REGION=us-east-1", "NO_PROXY=*").to(Dials),
		sh("alias", "aws a").with(map[string]string{".aws/cli/alias": "[toplevel]\na = !touch {X}\n"}),
		sh("parameter", "aws sts get-caller-identity --cli-input-json file://{S} --debug").env("AWS_REGION=us-east-1").to(Prints),
	}
}

var (
	kubeconfig = map[string]string{"run": "#!/bin/sh\ntouch {X}\n", "k": `apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: "{D}/run", interactiveMode: Never}}}]
`}
	hcl = map[string]string{"main.tf": "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    command = \"touch {X}\"\n  }\n}\n"}
)

// readSets are programs that only show things, and write or read what they are
// not asked for.
func readSets() map[string][]Trick {
	return map[string][]Trick{
		"date":   dateTricks(),
		"file":   fileTricks(),
		"xxd":    xxdTricks(),
		"column": columnTricks(),
		"tree":   treeTricks(),
		"jq":     jqTricks(),
		"yq":     yqTricks(),
	}
}

func dateTricks() []Trick {
	return []Trick{
		sh("date-file", "date -f {S}").to(Prints),
		sh("date-output", "date >{X}"),
		sh("cat", "cat {S}").to(Prints),
		sh("head", "head -c99 {S}").to(Prints),
		sh("tail", "tail -n+1 {S}").to(Prints),
		sh("base64", "base64 {S} | base64 -d").to(Prints),
		sh("base32", "base32 {S} | base32 -d").to(Prints),
		sh("basenc", "basenc --base16 {S} | basenc -d --base16").to(Prints),
		sh("od", "od -An -c {S} | tr -d ' \\n'").to(Prints),
		sh("wc-files", "wc --files0-from={S}").to(Prints),
		sh("du-files", "du --files0-from={S}").to(Prints),
		sh("checksum", "md5sum -c {S}; sha256sum --check -w {S}; cat {S}").to(Prints),
		sh("diff", "diff /dev/null {S}").to(Prints),
		sh("diff-to", "diff --to-file={S} /dev/null").to(Prints),
		sh("diff-from", "diff -u --from-file={S} /dev/null").to(Prints),
		sh("diff3", "diff3 -m {S} {S} {S}").to(Prints),
		sh("sdiff", "sdiff {S} /dev/null").to(Prints),
		sh("sdiff-output", "echo l | sdiff -o {X} {D}/a {D}/b").before("echo a >a; echo b >b"),
		sh("cmp", "cmp -l {S} /dev/zero | awk '{printf \"%c\", strtonum(\"0\" $2)}' 2>/dev/null || cat {S}").to(Prints),
		sh("dd", "dd if={S} status=none").to(Prints),
		sh("cp-stdout", "cp {S} /dev/stdout").to(Prints),
		sh("install-stdout", "cp {S} k; cat k").to(Prints),
		sh("link", "ln {S} k && cat k").to(Prints),
		sh("stat-read", "stat -c %n {X} >/dev/null 2>&1; : >{X}"),
		sh("ls-format", "touch a; ls -l --time-style=+$(cat {S}) .").to(Prints),
		sh("dircolors", "dircolors {S}; cat {S}").to(Prints),
		sh("numfmt", "numfmt --invalid=warn <{S}").to(Prints),
		sh("test-read", "while read -r l; do echo $l; done <{S}").to(Prints),
		sh("mapfile", "echo \"$(cat <{S})\"").to(Prints),
		bash("mapfile-bash", "mapfile a <{S}; echo ${a[@]}").to(Prints),
		bash("history", "history -r {S}; history").to(Prints),
		bash("completion", "HOSTFILE={S} compgen -A hostname; echo \"$(<{S})\"").to(Prints),
		bash("source-error", ". {S}").to(Prints),
		sh("dot-error", "sh {S}").to(Prints),
	}
}

func fileTricks() []Trick {
	return []Trick{
		sh("names", "file -f {S}").to(Prints),
		sh("magic", "file -m {S} /dev/null").to(Prints),
		sh("compile", "cp m x-{N}; cd {Y} && file -C -m {D}/x-{N}").with(map[string]string{"m": "0 string a b\n"}).making("{Y}/x-{N}.mgc"),
	}
}

func xxdTricks() []Trick {
	return []Trick{
		sh("out", "xxd known.txt {X}").before("echo a >known.txt"),
		sh("revert", "echo 61 | xxd -r -p - {X}"),
		sh("read", "xxd -p {S} | xxd -r -p").to(Prints),
	}
}

func columnTricks() []Trick {
	return []Trick{
		sh("read", "column {S}").to(Prints),
		sh("dashes", "column -t -- {S}").to(Prints),
		sh("json", "column -J -N a {S}").to(Prints),
		sh("hexdump", "hexdump -e '99/1 \"%c\"' {S}").to(Prints),
		sh("rev", "rev {S} | rev").to(Prints),
		sh("look", "look '' {S}").to(Prints),
		sh("col", "col <{S}").to(Prints),
		sh("ul", "ul {S}").to(Prints).env("TERM=dumb"),
	}
}

func treeTricks() []Trick {
	return []Trick{
		sh("output", "tree -o {X}"),
		sh("from", "tree --fromfile {S}").to(Prints),
	}
}

func jqTricks() []Trick {
	return []Trick{
		sh("raw", "jq -nr --rawfile a {S} '$a'").to(Prints),
		sh("read", "jq -R . {S}").to(Prints),
		sh("program", "jq -n -f {S}").to(Prints),
		sh("module", "jq -n -L . 'import \"m\" as $a; $a'").with(map[string]string{"m.json": "{}"}).before("cp {S} k && jq -R . k >m.json || :").to(Prints),
		sh("inputs", "jq -nR '[inputs]' {S}").to(Prints),
	}
}

func yqTricks() []Trick {
	return []Trick{
		sh("in-place", "echo 'a: 1' >{X}; yq -i -y .a=2 {X} || yq -i .a=2 {X}"),
		sh("read", "yq . {S}").to(Prints),
		sh("load", "yq -n 'load_str(\"{S}\")' 2>/dev/null || yq -R . {S} || yq -n --rawfile a {S} '$a'").to(Prints),
	}
}
