//go:build linux

package probe

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const classEnvironment = "env.leakage-injection"

func environmentRows() []Row {
	return slices.Concat(environmentSecrets(), environmentOdd(), environmentInjected(), environmentRedirected())
}

// leaking sets each variable to a token in the environment of the launcher.
func leaking(names ...string) func(*World) error {
	return func(w *World) error {
		for _, n := range names {
			w.Env = append(w.Env, n+"="+w.Token("variable "+n))
		}
		return nil
	}
}

func namesArg(names []string) []string { return []string{"names=" + strings.Join(names, "\n")} }

// leakRow is a row in which no variable of names may arrive.
func leakRow(id string, core bool, title string, refs []string, names []string) Row {
	return Row{ID: id, Class: classEnvironment, Core: core, Kind: Sandbox, Promise: "P1", Title: title, Refs: refs,
		Setup: leaking(names...), Action: "variables", Args: namesArg(names)}
}

var (
	providerVariables = []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY",
		"GOOGLE_API_KEY", "OPENROUTER_API_KEY", "MISTRAL_API_KEY", "GROQ_API_KEY", "XAI_API_KEY", "DEEPSEEK_API_KEY",
		"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "REPLICATE_API_TOKEN", "WANDB_API_KEY", "COHERE_API_KEY",
		"GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN", "BITBUCKET_TOKEN",
		"ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "NPM_TOKEN", "NODE_AUTH_TOKEN", "PYPI_TOKEN",
		"TWINE_PASSWORD", "UV_PUBLISH_TOKEN", "CARGO_REGISTRY_TOKEN", "GEM_HOST_API_KEY", "NUGET_API_KEY", "SLACK_BOT_TOKEN",
		"STRIPE_SECRET_KEY", "SENTRY_AUTH_TOKEN", "DATADOG_API_KEY", "TELEGRAM_BOT_TOKEN", "VERCEL_TOKEN", "NETLIFY_AUTH_TOKEN",
		"SNYK_TOKEN", "SONAR_TOKEN", "DATABASE_URL", "REDIS_URL", "MONGODB_URI", "PGPASSWORD", "MYSQL_PWD", "SECRET_KEY_BASE",
		"COMPANY_INTERNAL_THING", "PASSWORD", "MY_PRIVATE",
	}
	cloudVariables = []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
		"GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS", "CLOUDSDK_AUTH_ACCESS_TOKEN", "AZURE_CLIENT_ID",
		"AZURE_CLIENT_SECRET", "AZURE_TENANT_ID", "AZURE_STORAGE_KEY", "ARM_CLIENT_SECRET", "DIGITALOCEAN_TOKEN", "LINODE_TOKEN",
		"CLOUDFLARE_API_TOKEN", "CF_API_KEY", "HCLOUD_TOKEN", "HEROKU_API_KEY", "FLY_API_TOKEN", "ALICLOUD_SECRET_KEY",
		"TF_VAR_password", "TF_TOKEN_app_terraform_io", "VAULT_TOKEN", "CONSUL_HTTP_TOKEN", "NOMAD_TOKEN", "PULUMI_ACCESS_TOKEN",
		"KUBECONFIG", "KUBE_TOKEN", "DOCKER_AUTH_CONFIG", "DOCKER_PASSWORD", "SOPS_AGE_KEY", "OP_SERVICE_ACCOUNT_TOKEN",
		"BW_SESSION", "DOPPLER_TOKEN", "INFISICAL_TOKEN", "KRB5CCNAME",
	}
	socketVariables = []string{
		"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "GNOME_KEYRING_CONTROL", "DBUS_SESSION_BUS_ADDRESS",
		"DBUS_SYSTEM_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY", "TMUX", "TMUX_PANE", "STY",
		"DOCKER_HOST", "CONTAINER_HOST", "PODMAN_HOST", "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE",
		"VSCODE_GIT_ASKPASS_NODE", "VSCODE_GIT_ASKPASS_MAIN", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "PULSE_SERVER",
		"AT_SPI_BUS_ADDRESS", "SESSION_MANAGER", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "ZELLIJ", "KITTY_LISTEN_ON",
		"WEZTERM_UNIX_SOCKET", "ALACRITTY_SOCKET", "NVIM", "I3SOCK", "SWAYSOCK", "ICEAUTHORITY",
	}
	hostVariables = []string{
		"SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "SUDO_USER", "SUDO_COMMAND", "SUDO_UID", "HOSTNAME", "HOST", "MAIL", "OLDPWD", "WINDOWID",
		"XDG_SESSION_ID", "INVOCATION_ID", "JOURNAL_STREAM", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "LS_COLORS", "HISTFILE",
		"BASH_HISTORY", "WSL_DISTRO_NAME", "WSLENV",
	}
)

func environmentSecrets() []Row {
	all := slices.Concat(providerVariables, cloudVariables, socketVariables)
	host := slices.DeleteFunc(slices.Clone(hostVariables), func(n string) bool { return strings.HasPrefix(n, "LC_") || n == "OLDPWD" })
	hosted := leakRow("ENV-006", false, "the environment tells where the user comes from and which machine this is",
		[]string{"github.com/controlplaneio/sandbox-probe pkg/tasks/baseline"}, host)
	// These are set inside too, to other values: only their tokens count.
	hosted.Setup = leaking(append(slices.Clone(host), "USER", "LOGNAME", "OLDPWD")...)
	asked := leakRow("ENV-001b", false, "all names at once are asked for by a pattern, secrets among them",
		[]string{"environ(7)"}, []string{"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "VAULT_TOKEN"})
	asked.Options, asked.RefusalHolds = Options{Env: []string{"*"}}, true
	return []Row{
		leakRow("ENV-001", true, "keys and tokens of services are in the environment of the launcher",
			[]string{"promptfoo secret-env-read", "github.com/luckyPipewrench/pipelock internal/sandbox"}, providerVariables),
		asked,
		{ID: "ENV-001c", Class: classEnvironment, Kind: Control, Promise: "P1",
			Title:   "a variable that was granted arrives as it is",
			Refs:    []string{"environ(7)"},
			Options: Options{Env: []string{"PROBE_GIVEN=a b=c $d 'e'"}},
			Action:  "variable-given", Args: []string{"name=PROBE_GIVEN", "value=a b=c $d 'e'"}},
		leakRow("ENV-002", false, "credentials of clouds are in the environment of the launcher",
			[]string{"github.com/cdk-team/CDK pkg/evaluate"}, cloudVariables),
		leakRow("ENV-005", true, "the environment of the launcher names sockets of agents and sessions",
			[]string{"python-copier-template #340"}, socketVariables),
		leakRow("ENV-005b", false, "every name of all these lists at once, in small letters",
			[]string{"environ(7)"}, lower(all)),
		hosted,
	}
}

func lower(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, strings.ToLower(n))
	}
	return out
}

func environmentOdd() []Row {
	return []Row{
		{ID: "ENV-016", Class: classEnvironment, Kind: Sandbox, Promise: "P1",
			Title: "names that are given twice, that are no names or no text, and as many bytes as the kernel takes",
			Refs:  []string{"execve(2)", "environ(7)"},
			Setup: func(w *World) error {
				launch, err := w.helper()
				if err != nil {
					return err
				}
				w.Under = []string{launch, "-child", "x", "exec-odd", "O=" + w.O, "secret=" + w.Token("odd variables"), "--"}
				return nil
			},
			RefusalHolds: true,
			Absent:       []string{"O/fired"},
			Action:       "variables", Args: namesArg([]string{"DUPLICATE_TOKEN", "RAW_TOKEN", "A\nB_TOKEN", "\xff\xfe_TOKEN", "BASH_FUNC_true%%", "X", "Y", " SPACE_TOKEN", "BIG_0"})},
	}
}

// helper is a copy of the prober outside, out of reach, to start launchers by.
func (w *World) helper() (string, error) {
	path := filepath.Join(w.B, "helper")
	if exists(path) {
		return path, nil
	}
	return path, copyProgram(w.origin, path)
}

// firing sets variables in which O/fired stands, and says that nothing may
// make that file.
func firing(vars ...string) func(*World) error {
	return func(w *World) error {
		for _, v := range vars {
			v = strings.ReplaceAll(v, "O/", w.O+"/")
			w.Env = append(w.Env, strings.ReplaceAll(v, "W/", w.W+"/"))
		}
		return nil
	}
}

const toolsMayRun = "a program may start; whether it did what the variable says is seen outside"

func environmentInjected() []Row {
	touch := "touch O/fired\n"
	startup := []string{"BASH_ENV", "ENV", "PROMPT_COMMAND", "SHELLOPTS", "PS4", "ZDOTDIR", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT",
		"LD_DEBUG_OUTPUT", "LD_PROFILE_OUTPUT", "GCONV_PATH", "GLIBC_TUNABLES", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONINSPECT",
		"NODE_OPTIONS", "NODE_PATH", "PERL5OPT", "PERL5LIB", "PERL5DB", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
		"JDK_JAVA_OPTIONS", "DOTNET_STARTUP_HOOKS", "RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "LUA_INIT", "PHPRC", "R_PROFILE",
		"OPENSSL_CONF", "SSL_CERT_FILE", "SSLKEYLOGFILE", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_CONFIG_COUNT"}
	return []Row{
		leakRow("ENV-008", true, "variables that make an interpreter or the loader run code are handed in",
			[]string{"CVE-2026-22708", "ld.so(8)", "greywall IsDangerousEnvVar"}, startup),
		{ID: "ENV-008b", Class: classEnvironment, Core: true, Kind: Sandbox, Promise: "P3",
			Title: "variables that run a script of the workspace at the start of an interpreter run it on the host",
			Refs:  []string{"bash(1) BASH_ENV", "ld.so(8) LD_DEBUG_OUTPUT", "perlrun(1) PERL5LIB"},
			Needs: []string{"bash"},
			Setup: func(w *World) error {
				for path, content := range map[string]string{
					"W/evil.sh": touch, "W/py/sitecustomize.py": "open('O/fired','w')\n", "W/pl/Evil.pm": "open(F,'>','O/fired'); 1;\n",
				} {
					if err := w.File(path, strings.ReplaceAll(content, "O/", w.O+"/")); err != nil {
						return err
					}
				}
				return firing("BASH_ENV=W/evil.sh", "ENV=W/evil.sh", "LD_DEBUG=libs", "LD_DEBUG_OUTPUT=O/loader",
					"PYTHONPATH=W/py", "PERL5LIB=W/pl", "PERL5OPT=-MEvil", "PS4=$(touch O/fired)")(w)
			},
			Absent: []string{"O/fired"}, Harmless: toolsMayRun,
			Action: "run-tools", Args: []string{"tools=bash -c :\nperl -e 1\npython3 -c 1\nbash -xc :"}},
		{ID: "ENV-009", Class: classEnvironment, Core: true, Kind: Sandbox, Promise: "P3",
			Title: "pager, editor and diff variables run a command when git does",
			Refs:  []string{"CVE-2026-22708", "git(1) environment variables"},
			Needs: []string{"git"},
			Setup: func(w *World) error {
				if err := w.gitInit("W"); err != nil {
					return err
				}
				w.Arg("env=" + strings.Join(pagers(w), "\n"))
				w.Env = append(w.Env, pagers(w)...)
				return w.File("W/tracked", "changed\n")
			},
			Absent: []string{"O/fired"}, Harmless: toolsMayRun,
			Action: "run-tools", Args: []string{"tools=git diff\ngit branch\ngit log\ngit status\ngit config -e\ngit ls-remote ssh://probe.invalid/x\ngit ls-remote git://probe.invalid/x"}},
		{ID: "ENV-009b", Class: classEnvironment, Kind: Sandbox, Promise: "P3",
			Title:   "the same with a terminal, where pagers start",
			Refs:    []string{"CVE-2026-22708", "git(1) environment variables"},
			Needs:   []string{"git"},
			Options: Options{Terminal: true},
			Setup: func(w *World) error {
				w.Env = append(w.Env, pagers(w)...)
				return w.gitInit("W")
			},
			Absent: []string{"O/fired"}, Harmless: toolsMayRun,
			Action: "run-tools", Args: []string{"tools=git -p log\ngit -p diff HEAD\ngit --paginate branch"}},
	}
}

func pagers(w *World) []string {
	touch := "touch " + w.O + "/fired; :"
	var out []string
	for _, n := range []string{"PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_EXTERNAL_DIFF",
		"GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "GIT_ASKPASS", "LESSOPEN", "BROWSER"} {
		out = append(out, n+"="+touch)
	}
	return append(out, "LESSOPEN=|touch "+w.O+"/fired", "GIT_TRACE="+w.O+"/fired")
}

func environmentRedirected() []Row {
	return []Row{
		{ID: "ENV-010", Class: classEnvironment, Kind: Sandbox, Promise: "P3",
			Title: "GIT_* variables lead the git of a launcher to a hostile repository",
			Refs:  []string{"github.com/QwenLM/qwen-code/pull/11614", "git(1)"},
			Needs: []string{"git"},
			Setup: func(w *World) error {
				if err := w.gitInit("W/evil"); err != nil {
					return err
				}
				if err := w.File("W/evil.cfg", "[core]\n\tfsmonitor = touch "+w.O+"/fired\n"); err != nil {
					return err
				}
				return firing("GIT_DIR=W/evil/.git", "GIT_WORK_TREE=W/evil", "GIT_CONFIG_GLOBAL=W/evil.cfg", "GIT_TRACE=O/trace",
					"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=touch O/fired")(w)
			},
			Absent: []string{"O/fired", "O/trace"}, Harmless: toolsMayRun,
			Action: "run-tools", Args: []string{"tools=git status"}},
		{ID: "ENV-011", Class: classEnvironment, Core: true, Kind: Sandbox, Promise: "P2",
			Title: "an .env file of the workspace sends the launcher to another configuration",
			Refs:  []string{"CVE-2025-61260"},
			Setup: func(w *World) error {
				wide := "version: 1\nfilesystem:\n  write:\n    - " + w.O + "\n"
				for _, p := range []string{"W/cfg/holdfast/policy.yaml", "W/cfg/holdfast/config.yaml", "W/cfg/policy.yaml", "W/.config/holdfast/policy.yaml"} {
					if err := w.File(p, wide); err != nil {
						return err
					}
				}
				env := "HOME=W\nXDG_CONFIG_HOME=W/cfg\nHOLDFAST_HOME=W/cfg\nHOLDFAST_CONFIG=W/cfg/policy.yaml\nHOLDFAST_POLICY=W/cfg/policy.yaml\n" +
					"CODEX_HOME=W/cfg\nCLAUDE_CONFIG_DIR=W/cfg\n"
				return w.File("W/.env", strings.ReplaceAll(env, "=W", "="+w.W))
			},
			Action: "both", Args: []string{"path=O/canary\nO/sub/canary"}},
		leakRow("ENV-013", false, "base addresses and proxies of the launcher are handed in",
			[]string{"CVE-2026-21852"},
			[]string{"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GOOGLE_GEMINI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "OLLAMA_HOST",
				"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "NO_PROXY", "npm_config_registry", "PIP_INDEX_URL", "UV_INDEX_URL", "GOPROXY"}),
		{ID: "ENV-015", Class: classEnvironment, Kind: Sandbox, Promise: "P3",
			Title:  "relative and writable directories at the head of PATH hold programs that a launcher looks for",
			Refs:   []string{"CVE-2026-24763", "gemini-cli commandSafety Search Path Interruption"},
			Setup:  hostilePath,
			Absent: []string{"O/fired"}, Harmless: toolsMayRun,
			Action: "run-tools", Args: []string{"tools=git --version\nbwrap --version\nnewuidmap"}},
	}
}

// hostilePath puts programs into the workspace under every name that a
// launcher may run.
func hostilePath(w *World) error {
	for _, name := range []string{"git", "bwrap", "rg", "newuidmap", "newgidmap", "ip", "nft", "iptables", "mount", "umount", "systemd-run",
		"systemctl", "unshare", "nsenter", "setpriv", "id", "getent", "uname", "stty", "socat", "modprobe", "holdfast", "env"} {
		for _, dir := range []string{"W/bin/", "W/"} {
			if err := w.File(dir+name, "#!/bin/sh\ntouch "+w.O+"/fired\n"); err != nil {
				return err
			}
			if err := os.Chmod(w.Path(dir+name), 0o755); err != nil {
				return err
			}
		}
	}
	w.Env = append(w.Env, "PATH="+w.W+"/bin:.:bin::"+os.Getenv("PATH"))
	return nil
}
