package exposure

import (
	"path"
	"strings"
)

// Names of variables that are secrets, or of services that accept secrets in
// variables; * matches any text. Addresses are names of variables that lead to a
// helper of the host, whatever else they match.
var (
	secretNames = []string{
		"*TOKEN*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*_PASS", "*_PWD", "*CREDENTIAL*", "*_KEY",
		"*_KEYS", "*APIKEY*", "*API_KEY*", "*PRIVATE_KEY*", "*ACCESS_KEY*", "*_AUTH", "*_AUTH_*", "*COOKIE*",
		"*_DSN", "*DATABASE_URL*", "*CONNECTION_STRING*", "*_PAT", "*WEBHOOK*", "AWS_*", "AZURE_*", "ARM_*",
		"GITHUB_*", "GH_*", "GITLAB_*", "CI_JOB_*", "GOOGLE_*", "GCLOUD_*", "CLOUDSDK_*", "ANTHROPIC_*", "OPENAI_*",
		"GEMINI_*", "OPENROUTER_*", "HF_*", "HUGGING*", "CLOUDFLARE_*", "CF_API_*", "DIGITALOCEAN_*", "HEROKU_*",
		"VAULT_*", "NPM_CONFIG_*AUTH*", "KUBECONFIG", "NETRC", "PGPASS*", "MYSQL_PWD", "ACTIONS_*",
	}
	addresses = []string{
		"SSH_*", "GPG_*", "DBUS_*", "DISPLAY", "WAYLAND_*", "XAUTHORITY", "XDG_RUNTIME_DIR", "XDG_SESSION_*",
		"TMUX*", "STY", "VSCODE_*", "KRB5*", "DOCKER_*", "CONTAINER_HOST", "SUDO_*", "WINDOWID", "GNOME_*",
		"INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "LISTEN_*",
	}
)

// systemSecrets are files and directories that hold secrets of the system.
var systemSecrets = []string{
	"/etc/gshadow", "/etc/gshadow-", "/etc/krb5.keytab", "/etc/shadow", "/etc/shadow-", "/etc/ssh",
	"/etc/ssl/private", "/etc/sudoers", "/etc/sudoers.d", "/etc/wireguard",
}

// executed are paths in a home that the account executes or obeys later, without
// asking.
var executed = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
	".zprofile", ".zlogin", ".kshrc", ".inputrc", ".xprofile", ".xinitrc", ".xsession", ".pam_environment",
	".ssh", ".gnupg", ".gitconfig", ".npmrc", ".vimrc", ".vim", ".emacs", ".emacs.d", ".tmux.conf", ".gdbinit",
	".local/bin", "bin", "go/bin", ".cargo/bin", ".cargo/config.toml", ".pyenv", ".rustup", ".nvm",
	".config/autostart", ".config/systemd", ".config/environment.d", ".config/git", ".config/fish",
	".config/nvim", ".config/direnv", ".config/pip", ".config/go", ".local/share/applications",
	".local/share/systemd", ".local/lib", ".vscode", ".vscode-server", ".claude", ".codex", ".gemini",
	".bashrc.d", ".zshrc.d", ".hgrc", ".lesskey", ".mailcap", ".psqlrc", ".sqliterc", ".wgetrc", ".curlrc",
	".screenrc", ".irbrc", ".pryrc", ".Rprofile", ".config/Code", ".config/VSCodium", ".config/zed",
	".config/helix", ".config/opencode", ".config/emacs", ".config/hypr", ".config/i3", ".config/sway",
	".config/mise", ".config/npm", ".config/containers", ".cursor", ".docker", ".kube", ".aws", ".asdf",
	".volta", ".rbenv", ".goenv", ".nodenv", ".sdkman", ".deno/bin", ".bun/bin", ".npm-global", ".ghcup",
	".local/share/mise", ".local/share/uv", ".local/share/pipx", ".local/share/pnpm", ".local/share/fnm",
	".local/share/nvim", ".m2/settings.xml", ".m2/extensions.xml", ".gradle/init.d",
	".gradle/gradle.properties", ".bundle", ".gem", ".config/fontconfig", ".local/share/dbus-1",
	".local/share/flatpak", ".local/share/bash-completion", ".local/share/kservices5", ".local/share/kio",
}

// secretVariable returns the pattern by which a variable of this name is a
// secret; "" for none.
func secretVariable(name string) string {
	upper := strings.ReplaceAll(strings.ToUpper(name), "/", "_") // slashes are special in path.Match
	for _, p := range addresses {
		if is, _ := path.Match(p, upper); is {
			return ""
		}
	}
	for _, p := range secretNames {
		if is, _ := path.Match(p, upper); is {
			return p
		}
	}
	return ""
}
