package exposure

// store is where one tool keeps its credentials.
type store struct {
	id, title string
	// paths are patterns: ~ is the home, @config, @data, @cache and @run are the
	// XDG directories, $NAME at the beginning is a variable that names a file or
	// directory; * matches part of a name.
	paths   []string
	level   Level
	inspect func(content []byte) inspection // nil: its existence is enough
	why, do string
}

const (
	asYou     = "whoever has it acts as you, on every machine, until it is revoked"
	useBroker = "name it under credentials of the policy instead of storing it: the secret then never enters a run"
)

// stores is data: where tools keep credentials, according to their documentation.
var stores = []store{
	{"ssh-key", "SSH private keys", []string{"~/.ssh/*"}, High, sshKey,
		"a key without a passphrase logs in wherever it is accepted, and signs commits", "give it a passphrase (ssh-keygen -p), or keep it on a security key"},
	{"aws", "AWS credentials", []string{"~/.aws/credentials", "$AWS_SHARED_CREDENTIALS_FILE", "~/.aws/config", "~/.aws/cli/cache/*.json", "~/.aws/sso/cache/*.json"}, High, lines(`(?i)(aws_secret_access_key|aws_session_token)\s*=\s*\S|"(SecretAccessKey|accessToken|refreshToken)"\s*:`),
		asYou, "use short-lived sessions (aws sso login), and sign: aws-sigv4 in the policy"},
	{"gcloud", "Google Cloud credentials", []string{"@config/gcloud/application_default_credentials.json", "@config/gcloud/credentials.db", "@config/gcloud/access_tokens.db", "@config/gcloud/legacy_credentials/*/adc.json", "$GOOGLE_APPLICATION_CREDENTIALS", "$CLOUDSDK_CONFIG/application_default_credentials.json"}, High, nil,
		asYou, "gcloud auth revoke; use short-lived tokens by workload identity"},
	{"azure", "Azure credentials", []string{"~/.azure/msal_token_cache.*", "~/.azure/accessTokens.json", "~/.azure/service_principal_entries.*"}, High, nil, asYou, "az logout after use; use managed identities"},
	{"kube", "Kubernetes access", []string{"~/.kube/config", "$KUBECONFIG", "/etc/kubernetes/admin.conf", "/etc/rancher/k3s/k3s.yaml"}, High, lines(`(?m)^\s*-?\s*(token|client-key-data|client-key|password|exec|auth-provider|tokenFile)\s*:`),
		"it commands the clusters it names", "use an exec plugin with short-lived tokens, and a context with few rights"},
	{"kube-pod", "service account of a pod", []string{"/var/run/secrets/kubernetes.io/serviceaccount/token"}, High, nil, "it acts on the cluster as the pod", "automountServiceAccountToken: false"},
	{"docker", "container registry logins", []string{"~/.docker/config.json", "$DOCKER_CONFIG/config.json", "@config/containers/auth.json", "@run/containers/auth.json", "$REGISTRY_AUTH_FILE"}, High, dockerConfig,
		"it pushes images that others run", "docker logout, or a credential helper"},
	{"netrc", "logins of curl, git and others (netrc)", []string{"~/.netrc", "~/.netrc.gpg", "$NETRC"}, High, lines(`(?m)\bpassword\s+\S`), asYou, useBroker},
	{"git-store", "stored logins of git", []string{"~/.git-credentials", "@config/git/credentials"}, High, lines(`://[^/\s:]*:[^@\s]+@`), asYou, "git config --global --unset credential.helper, and " + useBroker},
	{"forge", "logins of forge programs (gh, glab, hub, tea)", []string{"@config/gh/hosts.yml", "$GH_CONFIG_DIR/hosts.yml", "@config/glab-cli/config.yml", "@config/hub", "@config/tea/config.yml", "~/.config/jj/*/token"}, High, lines(`(?m)(oauth_token|\btoken)\s*:\s*\S`),
		"it reads and pushes to every repository that you can", "gh auth login with a fine-grained token, or " + useBroker},
	{"npm", "logins of npm, yarn, pnpm and bun", []string{"~/.npmrc", "$NPM_CONFIG_USERCONFIG", "~/.yarnrc", "~/.yarnrc.yml", "@config/pnpm/rc", "@config/pnpm/auth.ini", "~/.bunfig.toml", "/etc/npmrc", "/usr/etc/npmrc"}, High, lines(`(?im)^[^#;\n]*(_authToken|_auth|_password|npmAuthToken|npmAuthIdent|\btoken)\s*[:=]\s*\S`),
		"it publishes packages that others install", "use a token that only reads, with an expiry"},
	{"python", "logins of pip, twine, poetry and uv", []string{"~/.pypirc", "@config/pip/pip.conf", "~/.pip/pip.conf", "/etc/pip.conf", "@config/pypoetry/auth.toml", "@data/uv/credentials/*", "@config/uv/uv.toml"}, High, lines(`(?im)^\s*password\s*[=:]\s*\S|://[^/\s:]+:[^@\s]+@|\btoken\s*=`),
		"it publishes packages that others install", "publish by trusted publishing (OIDC) from CI"},
	{"cargo", "logins of cargo", []string{"~/.cargo/credentials.toml", "~/.cargo/credentials", "$CARGO_HOME/credentials.toml"}, High, lines(`(?m)^\s*token\s*=`), "it publishes crates that others build", "cargo logout; publish from CI"},
	{"ruby", "logins of gem and bundler", []string{"~/.gem/credentials", "@data/gem/credentials", "~/.bundle/config"}, High, lines(`(?im)(api_key|_key|BUNDLE_[A-Z_]+(PASSWORD|TOKEN|__COM|__ORG))"?\s*:\s*\S`), "it publishes gems that others install", "gem signout; publish from CI"},
	{"jvm", "logins of maven, gradle, sbt and ivy", []string{"~/.m2/settings.xml", "~/.m2/settings-security.xml", "~/.gradle/gradle.properties", "~/.sbt/.credentials", "~/.ivy2/.credentials", "~/.sbt/*/credentials.sbt"}, High, lines(`(?i)<(password|passphrase|privateKey|master)>[^<$]|(password|token|secret)\w*\s*[=:]\s*\S`),
		"it publishes artefacts that others build with", useBroker},
	{"packages", "logins of composer, nuget, hex, helm and others", []string{"~/.composer/auth.json", "@config/composer/auth.json", "~/.nuget/NuGet/NuGet.Config", "~/.hex/hex.config", "@config/helm/registry/config.json", "~/.conan2/credentials.json", "~/.condarc"}, High, lines(`(?i)(password|token|secret|auth|oauth|api_?key)["'\w]*\s*([=:>]|value)|://[^/\s:]+:[^@\s]+@`),
		"it publishes or fetches what others build with", useBroker},
	{"terraform", "logins of terraform and pulumi", []string{"~/.terraform.d/credentials.tfrc.json", "~/.terraformrc", "~/.pulumi/credentials.json"}, High, lines(`(?i)token"?\s*[:=]|accessToken`), "it changes what your infrastructure is", "terraform logout; plan in CI with short-lived credentials"},
	{"vault", "token of Vault", []string{"~/.vault-token"}, High, nil, "it reads every secret that you may read", "vault token revoke -self after use"},
	{"cloud", "logins of other clouds and services", []string{"@config/doctl/config.yaml", "@config/hcloud/cli.toml", "~/.fly/config.yml", "~/.oci/config", "~/.oci/*.pem", "@config/rclone/rclone.conf", "~/.s3cfg", "~/.boto", "@config/.wrangler/config/default.toml", "~/.wrangler/config/default.toml", "@config/netlify/config.json", "@data/com.vercel.cli/auth.json", "@config/stripe/config.toml", "~/.databrickscfg", "~/.snowsql/config", "~/.kaggle/kaggle.json", "~/.huggingface/token", "@cache/huggingface/token", "@config/configstore/*.json", "@config/wandb/settings", "~/.railway/config.json", "~/.config/heroku/config.json", "~/.bluemix/config.json", "~/.jira.d/*"}, High, nil,
		asYou, "log out after use, or " + useBroker},
	{"database", "passwords of databases", []string{"~/.pgpass", "$PGPASSFILE", "~/.my.cnf", "~/.mylogin.cnf", "~/.mongodb/*", "~/.dbshell"}, High, nil, "it reads and changes data", useBroker},
	{"gpg-key", "GPG private keys", []string{"~/.gnupg/private-keys-v1.d/*.key", "$GNUPGHOME/private-keys-v1.d/*.key", "~/.gnupg/secring.gpg"}, High, gpgKey, "it signs commits and releases, and decrypts what is yours", "give it a passphrase, or keep it on a token"},
	{"secrets-key", "keys of age and sops", []string{"@config/sops/age/keys.txt", "~/.config/age/*", "~/.age/*", "$SOPS_AGE_KEY_FILE"}, High, nil, "it decrypts the secrets that are kept in repositories", "keep it on a token (age-plugin-yubikey)"},
	{"keyring", "keyrings of the desktop", []string{"@data/keyrings/*.keyring", "@data/kwalletd/*.kwl"}, Medium, nil, "while you are logged in it is open to every program of yours, by D-Bus", "lock it when it is not in use"},
	{"passwords", "password stores", []string{"~/.password-store/*.gpg", "~/.password-store/*/*.gpg", "@data/gopass/stores/*/*", "~/*.kdbx", "~/Documents/*.kdbx", "@config/op/config", "@config/Bitwarden CLI/data.json", "@config/Bitwarden/data.json", "@config/rbw/*", "@data/rbw/*"}, Medium, nil,
		"with the agent that unlocks it, it is every password you have", "lock it when it is not in use"},
	{"browser", "profiles of browsers", []string{"~/.mozilla/firefox/*/logins.json", "~/.mozilla/firefox/*/cookies.sqlite", "@config/mozilla/firefox/*/cookies.sqlite", "~/snap/firefox/common/.mozilla/firefox/*/cookies.sqlite", "~/.var/app/org.mozilla.firefox/.mozilla/firefox/*/cookies.sqlite", "@config/google-chrome/*/Cookies", "@config/google-chrome/*/Network/Cookies", "@config/google-chrome/*/Login Data", "@config/chromium/*/Cookies", "@config/chromium/*/Login Data", "~/snap/chromium/common/chromium/*/Cookies", "@config/BraveSoftware/Brave-Browser/*/Cookies", "@config/microsoft-edge/*/Cookies", "@config/vivaldi/*/Cookies"}, High, nil,
		"cookies are sessions: they pass every second factor", "browse in another account than the one that agents run in"},
	{"agent-login", "logins of AI agents and editors", []string{"~/.claude/.credentials.json", "~/.claude.json", "~/.codex/auth.json", "$CODEX_HOME/auth.json", "~/.gemini/oauth_creds.json", "~/.qwen/oauth_creds.json", "@config/github-copilot/*.json", "@data/opencode/auth.json", "@config/goose/secrets.yaml", "~/.continue/.env", "@config/Code/User/globalStorage/state.vscdb", "@config/Cursor/User/globalStorage/state.vscdb", "@config/io.datasette.llm/keys.json", "~/.aider.conf.yml"}, Medium, lines(`(?i)(token|key|secret|credential|password|SQLite format)`),
		"it spends on your account, and reads what the agent was told before", useBroker},
	{"history", "histories of shells and clients", []string{"~/.bash_history", "~/.zsh_history", "@data/fish/fish_history", "~/.python_history", "~/.node_repl_history", "~/.psql_history", "~/.mysql_history", "~/.rediscli_history", "~/.sqlite_history", "$HISTFILE", "~/.local/share/atuin/history.db"}, Low, history,
		"it shows what you reach and how; sometimes a password was typed there", "remove lines with secrets; HISTCONTROL=ignorespace"},
	{"kerberos", "Kerberos tickets and keytabs", []string{"$KRB5CCNAME", "/tmp/krb5cc_*", "/etc/krb5.keytab"}, High, nil, "it logs in as you until it ends", "kdestroy after use"},
	{"mail", "logins of mail and other programs", []string{"~/.mutt/*pass*", "~/.msmtprc", "~/.fetchmailrc", "~/.authinfo", "~/.authinfo.gpg", "~/.subversion/auth/svn.simple/*", "~/.config/gist", "~/.smbcredentials", "~/.vnc/passwd", "@config/remmina/*.remmina"}, Medium, nil, asYou, useBroker},
	{"runner", "registration of a CI runner", []string{"~/actions-runner/.credentials", "~/actions-runner/.credentials_rsaparams", "/home/*/actions-runner/.credentials_rsaparams", "/opt/actions-runner/.credentials_rsaparams", "/actions-runner/.credentials_rsaparams", "/etc/gitlab-runner/config.toml", "~/.gitlab-runner/config.toml", "/etc/buildkite-agent/buildkite-agent.cfg", "/etc/circleci-runner/circleci-runner-config.yaml", "~/agent/.credentials"}, High, nil,
		"whoever has it takes jobs, with their secrets, in the place of the runner", "register runners just in time, each for one job"},
	{"run-secret", "secrets mounted for this machine", []string{"/run/secrets/*", "/run/credentials/*/*"}, High, nil, "services and build steps get their secrets there", "mount them for the step that needs them only"},
}
