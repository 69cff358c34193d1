package rules

import (
	"slices"
	"strings"
	"sync"
	"unicode"
)

// grammar is how a program's arguments lead to its subcommand.
type grammar struct {
	values  []string          // options before the verb whose value is the next word
	flags   []string          // options without a value, if loose
	loose   bool              // an option in neither list may have a value: both are tried
	plus    bool              // a word that begins with + may come first, as +nightly of cargo
	aliases map[string]string // other words for a verb
	verbs   []string          // if the beginning of a verb is enough: all verbs besides the aliases
	dashes  bool              // upper case stands for a dash and lower case
	without string            // the verb where there is none
}

// maxTried bounds how many options are read in both ways.
const maxTried = 5

// read finds the verbs that arguments can mean.
func (g *grammar) read(args []string) []reading {
	var out []reading
	g.readVerbs(args, 0, &out)
	return out
}

func (g *grammar) readVerbs(args []string, tried int, out *[]reading) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "--":
			if i+1 < len(args) {
				*out = append(*out, reading{verb: g.verb(args[i+1]), args: args[i+2:]})
				return
			}
		case len(word) > 1 && word[0] == '-':
			option, _, given := strings.Cut(word, "=")
			switch {
			case given:
			case g.takes(option):
				i++
			case g.loose && !slices.Contains(g.flags, option) && tried < maxTried && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
				tried++
				g.readVerbs(args[i+2:], tried, out)
			}
		case g.plus && word != "" && word[0] == '+':
		default:
			*out = append(*out, reading{verb: g.verb(word), args: args[i+1:]})
			return
		}
	}
	*out = append(*out, reading{verb: g.without, args: args, ended: true})
}

// takes reports whether the value of an option is the next word. Options of one
// letter can be joined; the last of them may have one.
func (g *grammar) takes(option string) bool {
	if slices.Contains(g.values, option) {
		return true
	}
	return len(option) > 2 && option[1] != '-' && len(option) <= 8 && strings.Trim(option[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" &&
		slices.Contains(g.values, "-"+option[len(option)-1:]) && !slices.Contains(g.values, option[:2])
}

// verb is the full name of a verb.
func (g *grammar) verb(word string) string {
	if g.dashes && strings.IndexFunc(word, unicode.IsUpper) >= 0 && len(word) < 64 {
		var b strings.Builder
		for _, r := range word {
			if unicode.IsUpper(r) {
				b.WriteByte('-')
			}
			b.WriteRune(unicode.ToLower(r))
		}
		word = b.String()
	}
	if full, is := g.aliases[word]; is {
		return full
	}
	if len(g.verbs) == 0 || word == "" || slices.Contains(g.verbs, word) {
		return word
	}
	found := ""
	meet := func(name, full string) bool {
		if !strings.HasPrefix(name, word) || found == full {
			return true
		}
		if found != "" {
			return false
		}
		found = full
		return true
	}
	for _, one := range g.verbs {
		if !meet(one, one) {
			return word
		}
	}
	for one, full := range g.aliases {
		if !meet(one, full) {
			return word
		}
	}
	if found == "" {
		return word
	}
	return found
}

// anyGrammar is the grammar of an unknown program.
var anyGrammar = &grammar{loose: true}

// grammars are the grammars of the programs that rules are about, by name. Any
// other program has its verb as the first argument.
var grammars = sync.OnceValue(func() map[string]*grammar {
	all := map[string]*grammar{}
	for names, g := range grammarTable() {
		for _, name := range strings.Fields(names) {
			all[name] = &g
		}
	}
	return all
})

// parseAliases makes the aliases of verbs: "install=i,in add=a".
func parseAliases(text string) map[string]string {
	out := map[string]string{}
	for _, one := range strings.Fields(text) {
		full, words, _ := strings.Cut(one, "=")
		for _, word := range strings.Split(words, ",") {
			out[word] = full
		}
	}
	return out
}

func grammarTable() map[string]grammar {
	w := strings.Fields
	return map[string]grammar{
		"git": {values: w("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source --shallow-file")},
		"hg chg": {values: w("-R --repository --cwd --config --encoding --encodingmode --color --pager"), aliases: parseAliases("push=pu,pus"),
			verbs: w("add annotate archive backout bisect bookmarks branch branches bundle cat clone commit config copy diff export files forget graft grep heads help identify import incoming init locate log manifest merge outgoing parents paths phase pull push recover remove rename resolve revert root serve status summary tag tags tip unbundle update verify version")},
		"svn": {values: w("--username --password --config-dir --config-option --depth -r --revision"), aliases: parseAliases("commit=ci update=up checkout=co delete=del,remove,rm move=rename,ren copy=cp")},
		"cvs": {values: w("-d -e -s -T -z"), aliases: parseAliases("commit=ci,com import=im,imp")},
		"p4":  {values: w("-b -c -C -d -H -I -L -p -P -Q -r -u -x -z")},
		"jj":  {values: w("-R --repository --at-operation --at-op --color --config --config-file")},
		"npm npx cnpm": {loose: true, dashes: true,
			values: w("--prefix -C --workspace -w --registry --reg --userconfig --globalconfig --cache --loglevel --tag --otp --access --omit --include --location -L --script-shell --node-options --install-strategy --before --before-date --call -c --package -p --auth-type --scope --proxy --https-proxy --cafile --ca --cert --key --fetch-timeout --fetch-retries --maxsockets --depth --editor --user-agent --logs-dir --logs-max"),
			flags:  w("-g --global -D --save-dev -S --save -E --save-exact -O --save-optional -P --save-prod -B --save-bundle --no-save -s --silent -q --quiet -d -dd -ddd --verbose -f --force -y --yes -n --no -l --long --json -j --parseable --workspaces -ws --offline --prefer-offline --prefer-online --ignore-scripts --no-audit --no-fund --audit --fund --legacy-peer-deps --strict-peer-deps --package-lock --no-package-lock --dry-run --production --prod --dev --include-workspace-root --no-progress --no-color --color --foreground-scripts --bin-links --help --version -h -v"),
			verbs:  w(npmVerbs), aliases: parseAliases(npmAliases)},
		"pnpm pnpx": {loose: true, values: w("-C --dir --prefix --filter -F --filter-prod --registry --store-dir --loglevel --reporter --config --workspace-concurrency --userconfig"),
			flags:   w("-r --recursive -w --workspace-root -D --save-dev -P --prod -O --save-optional -E --save-exact -g --global --frozen-lockfile --no-frozen-lockfile --offline --prefer-offline --ignore-scripts --silent -s --color --no-color --parallel --stream --aggregate-output --if-present --yes -y"),
			aliases: parseAliases("install=i install-test=it update=up,upgrade remove=rm,uninstall,un link=ln exec=x")},
		"yarn yarnpkg": {loose: true, without: "install", values: w("--cwd --modules-folder --cache-folder --registry --mutex --use-yarnrc --preferred-cache-folder --network-timeout"),
			flags: w("--silent -s --frozen-lockfile --immutable --offline --prefer-offline --ignore-scripts --production --prod --non-interactive --json --verbose --flat --pure-lockfile --no-lockfile --check-files --ignore-engines --ignore-optional --force")},
		"bun":  {loose: true, values: w("--cwd --config -c --env-file --registry --filter -r --preload"), flags: w("--bun -b --silent --watch --hot --no-install -i --smol"), aliases: parseAliases("install=i add=a remove=rm x=bunx create=c")},
		"deno": {loose: true, values: w("--config -c --log-level -L --import-map --lock"), flags: w("-q --quiet --unstable -A --allow-all"), aliases: parseAliases("install=i remove=rm")},
		"pip pipx": {loose: true, values: w("--python --log --proxy --retries --timeout --exists-action --trusted-host --cert --client-cert --cache-dir --use-feature --use-deprecated --keyring-provider --resume-retries"),
			flags: w("-h --help --debug --isolated --require-virtualenv -v -vv -vvv --verbose -V --version -q -qq --quiet --no-input --no-cache-dir --disable-pip-version-check --no-color --no-python-version-warning")},
		"uv":                      {loose: true, values: w("--directory --project --config-file --cache-dir --color --python-preference --allow-insecure-host"), flags: w("-q --quiet -v --verbose -n --no-cache --offline --no-progress --no-config --native-tls --preview")},
		"poetry pdm hatch pipenv": {loose: true, values: w("-C --directory -P --project -p --env -e"), flags: w("-q --quiet -v -vv -vvv --verbose --ansi --no-ansi -n --no-interaction --no-plugins --no-cache")},
		"conda mamba micromamba":  {loose: true, flags: w("-v --verbose -q --quiet -y --yes --no-plugins -V --json")},
		"cargo":                   {plus: true, values: w("-Z --config -C --color --explain --lockfile-path --manifest-path"), aliases: parseAliases("build=b check=c doc=d run=r test=t remove=rm")},
		"rustup":                  {plus: true},
		"go":                      {values: w("-C")},
		"gem":                     {values: w("--config-file"), aliases: parseAliases("install=i"), verbs: w("build cert check cleanup contents dependency environment exec fetch generate_index help info install list lock mirror open outdated owner pristine push query rdoc rebuild search server signin signout sources specification stale uninstall unpack update which yank")},
		"bundle bundler":          {loose: true, without: "install", flags: w("--no-color -V --verbose --help -r --retry"), aliases: parseAliases("install=i,inst")},
		"composer": {loose: true, values: w("-d --working-dir"), flags: w("-q --quiet -v -vv -vvv --verbose -n --no-interaction --ansi --no-ansi --profile --no-plugins --no-scripts --no-cache"),
			aliases: parseAliases("install=i require=r update=u,upgrade remove=rm,uninstall"),
			verbs:   w("about archive audit browse bump check-platform-reqs clear-cache config create-project depends diagnose dump-autoload exec fund global help init install licenses list outdated prohibits reinstall remove require run-script search self-update show status suggests update validate")},
		"apt apt-get aptitude apt-fast":      {values: w("-o -c -t -a --option --config-file --target-release --default-release --host-architecture -w -F -O")},
		"apk":                                {values: w("-X -p -t --repository --root --virtual --arch --keys-dir --repositories-file --wait --cache-dir --cache-max-age --timeout")},
		"dnf yum microdnf dnf5":              {loose: true, flags: w("-y --assumeyes -q --quiet -v --verbose -b --best -C --cacheonly --refresh --nogpgcheck --allowerasing"), aliases: parseAliases("install=in,inst,localinstall,groupinstall update=up,upgrade")},
		"zypper":                             {loose: true, flags: w("-n --non-interactive -q --quiet -v --verbose --no-refresh --gpg-auto-import-keys"), aliases: parseAliases("install=in update=up dist-upgrade=dup remove=rm addrepo=ar patch=pa")},
		"brew":                               {flags: w("-v -q -d")},
		"docker podman nerdctl":              {values: w("-H --host --context -c --config -l --log-level --tlscacert --tlscert --tlskey --connection --url --identity --root --runroot --namespace -n --address -a --storage-driver")},
		"kubectl oc helm k9s":                {loose: true, values: w("-n --namespace --context --kubeconfig --cluster --user -s --server --token --as --as-group --cache-dir --certificate-authority --client-certificate --client-key --request-timeout -v --tls-server-name --kube-context --kube-token --kube-apiserver --registry-config --repository-cache --repository-config --burst-limit"), flags: w("--insecure-skip-tls-verify --match-server-version --debug --warnings-as-errors")},
		"aws gcloud az gh glab vault gsutil": {loose: true, flags: w("--debug --no-verify-ssl --no-paginate --no-sign-request --quiet -q --verbose --only-show-errors")},
	}
}

const npmVerbs = "access adduser approve-scripts audit bugs cache ci completion config dedupe deny-scripts deprecate diff dist-tag docs doctor edit exec explain explore find-dupes fund get help help-search init install install-ci-test install-scripts install-test link ll login logout ls org outdated owner pack ping pkg prefix profile prune publish query rebuild repo restart root run sbom search set shrinkwrap stage star stars start stop team test token trust undeprecate uninstall unpublish unstar update version view whoami"

const npmAliases = "owner=author docs=home bugs=issues view=info,show,v search=find,s,se install=add,i,in,ins,inst,insta,instal,isnt,isnta,isntal,isntall uninstall=unlink,remove,rm,r,un " +
	"rebuild=rb ls=list link=ln init=create,innit install-test=it install-ci-test=cit,clean-install-test,sit update=u,up,upgrade,udpate config=c test=tst,t dedupe=ddp run=run-script,rum,urn " +
	"ci=clean-install,ic,install-clean,isntall-clean exec=x explain=why ll=la version=verison help=hlep dist-tag=dist-tags org=ogr adduser=add-user"
