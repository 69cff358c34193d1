//go:build linux

package probe

import (
	"os"
	"slices"
	"strings"
)

const classCredentials = "fs.credentials"

var credentialRefs = []string{"github.com/controlplaneio/sandbox-probe pkg/tasks/baseline", "github.com/isanchez31/opencode-sandbox-plugin/issues/16"}

// homeSecrets are files below the home that hold secrets, by who keeps them.
var homeSecrets = []struct {
	id    string
	core  bool
	what  string
	paths string // below H, separated by blanks; a name with one in it has it as "%"
}{
	{"CRD-001", true, "SSH keys and configuration", ".ssh/id_rsa .ssh/id_ed25519 .ssh/id_ecdsa .ssh/id_ecdsa_sk .ssh/config .ssh/known_hosts " +
		".ssh/authorized_keys .ssh/work.pem .ssh/sockets/cm .ssh/cm-user@host .ssh/environment"},
	{"CRD-002", false, "keys of GnuPG, pass, age and sops", ".gnupg/private-keys-v1.d/0.key .gnupg/secring.gpg .gnupg/trustdb.gpg " +
		".password-store/site.gpg .config/age/keys.txt .config/sops/age/keys.txt"},
	{"CRD-003", true, "credentials of AWS", ".aws/credentials .aws/config .aws/sso/cache/a.json .aws/cli/cache/b.json .boto .s3cfg .saml2aws"},
	{"CRD-004", false, "credentials of Google Cloud", ".config/gcloud/credentials.db .config/gcloud/access_tokens.db " +
		".config/gcloud/application_default_credentials.json .config/gcloud/legacy_credentials/a/adc.json .config/gcloud/configurations/config_default"},
	{"CRD-005", false, "credentials of Azure", ".azure/msal_token_cache.json .azure/accessTokens.json .azure/azureProfile.json " +
		".azure/service_principal_entries.json .config/Azure/token .IdentityService/msal.cache"},
	{"CRD-006", false, "credentials of other clouds", ".config/doctl/config.yaml .config/hcloud/cli.toml .oci/config .oci/key.pem .aliyun/config.json " +
		".config/linode-cli .fly/config.yml .config/netlify/config.json .vercel/auth.json .config/heroku/token .wrangler/config/default.toml .config/cloudflared/cert.pem"},
	{"CRD-007", false, "credentials of Kubernetes and Helm", ".kube/config .kube/cache/oidc .config/helm/registry/config.json " +
		".config/helm/repositories.yaml .minikube/client.key .krew/receipts/x"},
	{"CRD-008", false, "credentials of container registries", ".docker/config.json .docker/contexts/meta/a/meta.json .docker/machine/key " +
		".config/containers/auth.json .dockercfg .local/share/containers/storage/secrets/secrets.json"},
	{"CRD-009", false, "secrets of infrastructure tools and password managers", ".terraform.d/credentials.tfrc.json .terraformrc infra/terraform.tfstate " +
		".pulumi/credentials.json .vault-token .config/op/config .op/session .1password/agent .config/Bitwarden%CLI/data.json .config/rbw/config.json " +
		".doppler/.doppler.yaml .infisical/infisical-config.json .akeyless/profiles .chef/user.pem .ansible/x.vault .vault_pass"},
	{"CRD-010", true, "credentials of version control", ".git-credentials .config/git/credentials .gitconfig .config/gh/hosts.yml " +
		".config/glab-cli/config.yml .config/hub .config/tea/config.yml .netrc .gitcookies .hgrc .subversion/auth/svn.simple/a"},
	{"CRD-011", false, "credentials of Node", ".npmrc .yarnrc .yarnrc.yml .config/pnpm/rc .bunfig.toml .npm/_logs/a .config/configstore/x.json .config/yarn/global/.npmrc"},
	{"CRD-012", false, "credentials of Python", ".pypirc .pip/pip.conf .config/pip/pip.conf .config/pypoetry/auth.toml .config/uv/uv.toml " +
		".local/share/uv/credentials/a .condarc .config/anaconda/token .keyring/x .local/share/python_keyring/keyring_pass.cfg"},
	{"CRD-013", false, "credentials of other languages' packagers", ".m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .sbt/credentials " +
		".ivy2/.credentials .nuget/NuGet/NuGet.Config .config/NuGet/NuGet.Config .composer/auth.json .config/composer/auth.json .gem/credentials " +
		".bundle/config .cargo/credentials.toml .cargo/credentials .config/go/env .pub-cache/credentials.json .config/dart/pub-credentials.json .hex/hex.config .cocoapods/netrc"},
	{"CRD-014", false, "credentials of databases", ".pgpass .pg_service.conf .my.cnf .mylogin.cnf .mongorc.js .dbshell .config/redis/cli .rediscli_auth .snowflake/config.toml .databrickscfg .bigqueryrc"},
	{"CRD-015", true, "credentials of coding agents and model vendors", ".claude/.credentials.json .claude/settings.json .claude/projects/a.jsonl " +
		".claude/history.jsonl .claude.json .codex/auth.json .codex/config.toml .codex/sessions/a .codex/history.jsonl .gemini/oauth_creds.json " +
		".gemini/settings.json .gemini/.env .qwen/oauth_creds.json .cursor/mcp.json .cursor/auth .config/cursor/auth.json " +
		".config/github-copilot/hosts.json .config/github-copilot/apps.json .copilot/config.json .aider.conf.yml .aider/oauth-keys.env " +
		".cline/data/secrets.json .continue/config.json .config/goose/config.yaml .local/share/opencode/auth.json .config/amp/settings.json " +
		".aws/amazonq/mcp.json .kiro/settings/mcp.json .codeium/config.json .windsurf/mcp.json .openclaw/openclaw.json .cache/huggingface/token " +
		".huggingface/token .config/openai/auth .replicate/auth .wandb/settings .kaggle/kaggle.json .ollama/id_ed25519"},
	{"CRD-016", false, "profiles of browsers and messengers", ".mozilla/firefox/p.default/logins.json .mozilla/firefox/p.default/key4.db .mozilla/firefox/p.default/cookies.sqlite " +
		".config/google-chrome/Default/Cookies .config/google-chrome/Default/Login%Data .config/chromium/Default/Cookies .config/BraveSoftware/a/Cookies " +
		".thunderbird/p/key4.db .config/Slack/Cookies .config/discord/Local%Storage/a .config/Signal/config.json .local/share/TelegramDesktop/tdata/key"},
	{"CRD-017", false, "keyrings and the desktop's secrets", ".local/share/keyrings/login.keyring .local/share/kwalletd/kdewallet.kwl .config/kwalletrc " +
		".pki/nssdb/key4.db .Xauthority .ICEauthority .config/monitors.xml .cert/nm.pem .config/wireguard/wg0.conf .openvpn/client.ovpn"},
	{"CRD-018", false, "histories, caches and editors' state", ".bash_history .zsh_history .local/share/fish/fish_history .python_history .node_repl_history " +
		".psql_history .mysql_history .sqlite_history .lesshst .viminfo .local/share/nvim/shada/main.shada .local/state/nvim/undo " +
		".emacs.d/auto-save-list/a .cache/a-program/secret .local/share/recently-used.xbel .local/share/atuin/key " +
		".config/Code/User/globalStorage/state.vscdb .config/Code/User/History/a .config/Code/User/workspaceStorage/b"},
	{"CRD-020", false, "wallets", ".bitcoin/wallet.dat .ethereum/keystore/a .config/solana/id.json .near-credentials/a .aptos/config.yaml .sui/keystore " +
		".foundry/keystores/a .config/Exodus/exodus.wallet .electrum/wallets/default .monero/wallet"},
}

func credentialsRows() []Row {
	var out []Row
	for _, c := range homeSecrets {
		out = append(out, homeRow(c.id, c.core, "the home holds "+c.what, strings.Fields(c.paths)))
	}
	return slices.Concat(out, credentialsElsewhere())
}

// homeRow plants each path of the home, with a token of its own.
func homeRow(id string, core bool, title string, paths []string) Row {
	var at []string
	for _, p := range paths {
		at = append(at, "H/"+strings.ReplaceAll(p, "%", " "))
	}
	return Row{ID: id, Class: classCredentials, Core: core, Kind: Sandbox, Promise: "P1", Title: title, Refs: credentialRefs,
		Plant: at, Action: "find-secrets", Args: []string{"path=" + strings.Join(at, "\n")}}
}

func credentialsElsewhere() []Row {
	siblings := []string{"S/sibling/.env", "S/other-repo/src/config.py", "S/other-repo/.git/config", "S/w.env", "S/.env", "S/key.pem"}
	project := []string{"W/.env", "W/.env.local", "W/.env.production", "W/deploy/key.pem", "W/tls.key", "W/a.p12", "W/b.pfx", "W/c.jks", "W/d.keystore",
		"W/config/secrets.yml", "W/secrets.yaml", "W/credentials.json", "W/serviceAccountKey.json", "W/prod.tfvars"}
	readable := func(at []string) []string { return []string{"path=" + strings.Join(at, "\n")} }
	return []Row{
		{ID: "CRD-001b", Class: classCredentials, Core: true, Kind: Sandbox, Promise: "P1",
			Title:  "the machine's own secrets are opened: host keys, shadow passwords, cluster and network credentials",
			Refs:   credentialRefs,
			Action: "open-secrets", Args: readable([]string{"/etc/ssh/ssh_host_*_key", "/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/sudoers", "/etc/krb5.keytab",
				"/etc/rancher/k3s/k3s.yaml", "/etc/kubernetes/*.conf", "/var/run/secrets/kubernetes.io/serviceaccount/token", "/etc/wireguard",
				"/etc/NetworkManager/system-connections", "/etc/docker/key.json", "/var/lib/docker", "/var/log/*.log", "/var/spool/cron"})},
		{ID: "CRD-001c", Class: classCredentials, Kind: Sandbox, Promise: "P1",
			Title:        "credentials in the home that the environment does not name, but the user database does",
			Refs:         []string{"getpwnam(3)"},
			Setup:        func(w *World) error { w.Env = append(w.Env, "HOME="+w.B+"/nowhere"); return nil },
			Plant:        []string{"H/.ssh/id_ed25519", "H/.config/gh/hosts.yml"},
			RefusalHolds: true,
			Action:       "find-secrets", Args: readable([]string{"H/.ssh/id_ed25519", "H/.config/gh/hosts.yml"})},
		{ID: "CRD-021", Class: classCredentials, Core: true, Kind: Sandbox, Promise: "P1",
			Title:  "secrets of projects beside the workspace",
			Refs:   credentialRefs,
			Plant:  siblings,
			Action: "find-secrets", Args: readable(siblings)},
		{ID: "CRD-021b", Class: classCredentials, Kind: Sandbox, Promise: "P1",
			Title:   "secrets in the workspace that the launcher was asked to hide",
			Refs:    credentialRefs,
			Plant:   project,
			Options: Options{Hide: project},
			Action:  "find-secrets", Args: append(readable(project), "names=known")},
		{ID: "CRD-022", Class: classCredentials, Kind: Sandbox, Promise: "P1",
			Title:    "programs on PATH that hand out credentials",
			Refs:     []string{"gitcredentials(7)", "CVE-2025-48386"},
			Setup:    credentialHelpers,
			Harmless: "a helper may start; what it would print is a token",
			Action:   "call-helpers", Args: []string{"names=git-credential-store\ngit-credential-libsecret\ndocker-credential-desktop\ndocker-credential-pass\nsecret-tool\n" +
				"gh\npass\nop\naws\ngcloud\nvault\nsecurity"}},
		writeRow("CRD-023", "files that authorise somebody are written", []string{"authorized_keys(5)"},
			[]string{".ssh/authorized_keys", ".ssh/config", ".ssh/known_hosts", ".aws/config", ".netrc", ".npmrc", ".git-credentials", ".kube/config", ".docker/config.json", ".gnupg/gpg.conf", ".pgpass"}),
	}
}

// writeRow writes files of the home, half of which are there before.
func writeRow(id, title string, refs, paths []string) Row {
	r := Row{ID: id, Class: classCredentials, Kind: Sandbox, Promise: "P2", Title: title, Refs: refs, Files: map[string]string{},
		Harmless: "the home inside may be another one", Action: "append-secret"}
	var at []string
	for i, p := range paths {
		at = append(at, "H/"+p)
		if i%2 == 0 {
			r.Files["H/"+p] = "# a user's file\n"
			r.Keep = append(r.Keep, "H/"+p)
		} else if p != ".netrc" {
			r.Absent = append(r.Absent, "H/"+p)
		}
	}
	r.Args = []string{"path=" + strings.Join(at, "\n")}
	return r
}

// credentialHelpers puts programs on PATH that print what is stored in the
// home, as the real ones do.
func credentialHelpers(w *World) error {
	if err := w.Plant("H/.local/share/helper-store"); err != nil {
		return err
	}
	for _, name := range []string{"git-credential-store", "git-credential-libsecret", "docker-credential-desktop", "docker-credential-pass", "secret-tool",
		"gh", "pass", "op", "aws", "gcloud", "vault", "security"} {
		if err := w.File("H/.local/bin/"+name, "#!/bin/sh\nexec cat "+w.H+"/.local/share/helper-store\n"); err != nil {
			return err
		}
		if err := os.Chmod(w.Path("H/.local/bin/"+name), 0o755); err != nil {
			return err
		}
	}
	w.Env = append(w.Env, "PATH="+w.H+"/.local/bin:"+os.Getenv("PATH"))
	return nil
}
