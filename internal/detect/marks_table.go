package detect

// pathTable classifies names in paths: marks, joined by +, then the paths. One
// without a slash before it may be anywhere; $ means that nothing is below; *
// is any one name; ␣ is a space.
const pathTable = `
credential         .ssh .gnupg .aws .azure .oci .kube .config/gcloud .config/doctl .config/hub .config/glab-cli .config/op .config/sops
credential         .password-store .local/share/keyrings .local/share/kwalletd .vault-token .terraform.d/credentials.tfrc.json .terraformrc
credential         .config/age .config/rclone .config/filezilla .pgpass .my.cnf .mylogin.cnf .s3cfg .boto .smbcredentials .msmtprc .fetchmailrc
credential         .config/helm .config/heroku .config/netlify .fly/config.yml .config/vercel .config/wrangler .config/stripe .config/ngrok
credential+agent-store .claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .qwen/oauth_creds.json .local/share/opencode/auth.json .config/github-copilot
credential         .config/openai .electrum .bitcoin/wallet.dat .ethereum/keystore .config/solana .saml2aws
credential         .config/containers/auth.json .docker/config.json .m2/settings.xml .gradle/gradle.properties .nuget/NuGet/NuGet.Config
credential         .config/gh .git-credentials .config/git/credentials .gem/credentials .cargo/credentials .cargo/credentials.toml .config/pypoetry
credential+usual   .netrc _netrc .npmrc .yarnrc.yml .pypirc .ssh/config .ssh/known_hosts .ssh/known_hosts2 .aws/config .aws/credentials .kube/config$
credential+usual   .docker/config.json$ .git-credentials$ .config/git/credentials$ .config/gcloud .azure .gem/credentials .cargo/credentials .cargo/credentials.toml
credential+usual   .gnupg/gpg.conf .gnupg/common.conf .gnupg/pubring.kbx .gnupg/trustdb.gpg .ssh$ .aws$ .aws/models .aws/cli/alias$ .kube$ .kube/.kubeconfig .kube/cache .kube/kuberc .kube/.kubeconfig .kube/cache .gnupg$ .m2/settings.xml .gradle/gradle.properties .my.cnf .pgpass
credential+usual   .config/gh/config.yml .config/gh/hosts.yml .config/pypoetry .boto .terraformrc .config/containers/auth.json .nuget/NuGet/NuGet.Config
credential+usual   /var/run/secrets /run/secrets .cache/huggingface/token .config/anthropic
credential+key     .gnupg/private-keys-v1.d .gnupg/secring.gpg
browser-store+credential .mozilla/firefox .config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge .config/vivaldi .thunderbird
browser-store+credential Login␣Data$ Cookies$ cookies.sqlite$ logins.json$ key4.db$
system-secret      /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/ssl/private /etc/krb5.keytab /etc/wireguard
system-secret      /etc/ssh/ssh_host_rsa_key /etc/ssh/ssh_host_ed25519_key /etc/ssh/ssh_host_ecdsa_key /etc/kubernetes /var/lib/kubelet /etc/docker/key.json /var/lib/docker
system-secret      /etc/security/opasswd /etc/ppp/chap-secrets /etc/NetworkManager/system-connections /var/lib/sss/secrets /etc/rancher
accounts           /etc/passwd /etc/passwd- /etc/group /etc/group- /etc/subuid /etc/subgid /etc/hosts /etc/resolv.conf /etc/nsswitch.conf /etc/login.defs /etc/security /etc/ssh
hook               .git/hooks .git/config$ .git/config.worktree .git/info/attributes .gitmodules$ .git/modules/*/hooks .git/modules/*/config$ .husky .githooks
editor             .vscode .idea .zed .fleet .helix .devcontainer .devcontainer.json .exrc .nvimrc .nvim.lua .vimrc .dir-locals.el .theia .vs .run .editorconfig
guardrail          .claude .claude.json .codex .cursor .cursorrules .gemini .qwen .mcp.json .windsurf .windsurfrules .clinerules .roo .roomodes .kiro .amazonq
guardrail          AGENTS.md$ CLAUDE.md$ CLAUDE.local.md$ GEMINI.md$ QWEN.md$ AGENT.md$ .goosehints .opencode opencode.json .continue .aider.conf.yml .augment .junie
guardrail          .github/copilot-instructions.md .github/instructions .github/hooks .agents .agent .copilot .factory .openhands
own-policy         .config/holdfast .holdfast
own-log            .local/state/holdfast /var/lib/holdfast /var/log/holdfast
pipeline           .github/workflows .github/actions .gitlab-ci.yml .circleci .travis.yml azure-pipelines.yml Jenkinsfile$ .drone.yml .buildkite .woodpecker .forgejo/workflows .gitea/workflows bitbucket-pipelines.yml
startup            .bashrc .shrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .inputrc
startup            .config/fish .config/autostart .config/systemd .config/environment.d .local/share/systemd .ssh/authorized_keys .ssh/authorized_keys2 .ssh/rc .ssh/environment
startup            .envrc .xprofile .xinitrc .xsession .pam_environment .config/direnv .local/share/applications .local/share/dbus-1
startup            /etc/cron.d /etc/cron.daily /etc/cron.hourly /etc/crontab /var/spool/cron /etc/systemd /lib/systemd /usr/lib/systemd /etc/init.d /etc/rc.local /etc/profile
startup            /etc/profile.d /etc/bash.bashrc /etc/ld.so.preload /etc/ld.so.conf.d /etc/environment /etc/pam.d /etc/udev/rules.d /etc/xdg/autostart /etc/update-motd.d /etc/zsh
startup            sitecustomize.py usercustomize.py .local/lib/*/site-packages/usercustomize.py .local/lib/*/site-packages/sitecustomize.py /etc/modules-load.d /etc/apt/apt.conf.d
history            .bash_history .ash_history .sh_history .history$ .zsh_history .python_history .node_repl_history .psql_history .mysql_history .local/share/fish/fish_history
kernel-callback    /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hotplug /proc/sysrq-trigger /proc/sys/fs/binfmt_misc /proc/sys/kernel/poweroff_cmd
kernel-callback    /sys/kernel/uevent_helper release_agent$ uevent_helper$ /sys/kernel/security /sys/kernel/debug /sys/fs/bpf /proc/kcore /dev/mem /dev/kmem /dev/port /sys/firmware/efi/efivars
host-socket+runtime-socket docker.sock containerd.sock crio.sock podman.sock dockershim.sock buildkitd.sock libvirt-sock libvirt/libvirt-sock nerdctl.sock cri-dockerd.sock containerd-shim lxd/unix.socket incus/unix.socket kubelet.sock
host-socket        /run/systemd/private /run/systemd/journal /run/dbus/system_bus_socket /var/run/dbus/system_bus_socket /run/user/*/bus /run/user/*/systemd .X11-unix /run/snapd.socket
host-socket        /run/user/*/pipewire-0 /run/user/*/wayland-0 /run/user/*/pulse /var/run/nscd /run/nscd /run/mysqld /run/postgresql /var/run/postgresql /run/avahi-daemon /run/cups /run/acpid.socket
agent-socket+host-socket S.gpg-agent S.gpg-agent.ssh S.gpg-agent.extra S.keyboxd /run/user/*/keyring /run/user/*/gnupg .1password/agent.sock ssh-agent.socket ssh-agent.sock
system-log         /var/log /run/log
memory-file        /dev/shm
temporary          /tmp /var/tmp /dev/shm
dependency         node_modules site-packages dist-packages vendor .venv venv .cargo/registry go/pkg/mod .npm/_cacache .cache .pnpm-store bower_components .tox .nox .rustup .m2/repository .gradle/caches
generated          target build dist out __pycache__ .pytest_cache .mypy_cache .ruff_cache .next .nuxt .turbo .parcel-cache coverage .coverage .gradle .eggs CMakeFiles _build .dart_tool bin obj tmp .git/objects .git/refs .git/logs .git/rebase-merge .git/rebase-apply .hypothesis .gocache
`

// programTable classifies programs: marks, then base names, without a version
// at the end.
const programTable = `
shell        sh bash dash zsh ksh ash fish csh tcsh mksh busybox rbash pwsh xonsh nu
interpreter  python python2 python3 pypy pypy3 node nodejs bun deno perl ruby irb php lua luajit tclsh Rscript julia guile java jshell gawk awk osascript ts-node tsx groovy
fetcher      curl wget aria2c nc ncat netcat socat http https xh httpie ftp tftp sftp scp rsync telnet lftp axel fetch rclone
archiver     tar bsdtar gtar unzip bsdunzip 7z 7za 7zr unrar cpio ar unar unsquashfs jar pax
encoder      base64 base32 basenc xxd uuencode openssl gzip bzip2 xz zstd zip gpg age od hexdump tar bsdtar 7z
packager     npm npx yarn pnpm pip pip3 pipx uv uvx poetry cargo gem bundle composer go apt apt-get dpkg dnf yum apk brew conda mamba mvn gradle corepack
client       git git-remote-http git-remote-https git-credential-store git-lfs ssh ssh-add ssh-keygen ssh-agent scp sftp rsync curl wget npm npx node nodejs yarn pnpm bun deno pip pip3 python python3 pypy uv poetry twine cargo go java mvn gradle aws gcloud gsutil az
client       kubectl helm docker podman gh glab hub terraform tofu ansible ruby gem bundle php composer hg svn gpg gpg2 gpgconf psql mysql code nvim vim rustc dotnet nuget claude codex gemini opencode
browser      chrome chromium chromium-browser google-chrome chrome_crashpad_handler chrome-sandbox headless_shell firefox firefox-bin thunderbird electron msedge brave
debugger     gdb gdbserver lldb lldb-server strace ltrace dlv rr perf valgrind py-spy bpftrace uftrace
container    unshare nsenter bwrap runc crun runsc podman docker buildah containerd ctr nerdctl firejail lxc-start systemd-nspawn chroot proot fusermount fusermount3 newuidmap capsh setpriv mount umount
vault        secret-tool keyctl pass gopass op bw kwallet-query gnome-keyring-daemon
issuer       gh aws gcloud kubectl git
killer       kill pkill killall killall5 xkill skill fuser
elevates     sudo su doas pkexec runuser sudoedit
agent        claude codex gemini qwen opencode copilot cline aider goose pi
administers  shutdown reboot halt poweroff telinit swapon swapoff insmod modprobe rmmod depmod useradd usermod userdel groupadd groupmod groupdel adduser deluser
administers  passwd chpasswd chage chsh gpasswd vipw visudo setenforce auditctl augenrules ufw iptables iptables-restore ip6tables nft pfctl firewall-cmd setcap chattr
administers  crontab at systemd-run update-ca-certificates update-ca-trust update-rc.d chkconfig mkfs mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mke2fs wipefs fdisk sfdisk parted mkswap losetup
offensive    nmap masscan zmap rustscan hping3 arp-scan netdiscover nikto gobuster ffuf hydra medusa john hashcat sqlmap msfconsole msfvenom linpeas linpeas.sh LinEnum.sh AutoSUID.sh LaZagne laZagne sshpass
offensive    pspy pspy64 mimipenguin mimipenguin.sh psexec psexec.py secretsdump secretsdump.py ldapdomaindump crackmapexec netexec kerbrute evil-winrm bettercap ettercap
offensive    tcpdump tshark dumpcap ngrok cloudflared devtunnel chisel frpc tor
shreds       shred srm wipe sdelete
miner        xmrig xmr-stak cpuminer minerd t-rex ethminer nbminer phoenixminer
`
