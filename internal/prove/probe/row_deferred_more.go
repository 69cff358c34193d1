//go:build linux

package probe

import "strings"

// moreDenied and moreFlagged are names that programs of further ecosystems execute
// or obey: of the first kind without being asked, of the second when they are
// started in the directory.
const (
	moreDenied = ".direnv/x .envrc.x .direnvrc .config/direnv/x .devenv/x .devenv.flake.nix .devbox/x .flox/x .local.vimrc .vimrc.local .projections.json .ctags " +
		".ctags.d/x gtags.conf .globalrc .emacs.desktop .mc.menu .lite_project.lua .kateprojectx .kdev4/x .externalToolBuilders .factorypath a.ipr a.iws " +
		"a.run.xml a.pro.userx CMakeLists.txt.userx .qtcreator/x .ropeproject/config.py .lsp/config.edn .emmyrc.json omnisharp.json erlang_ls.config " +
		".elixir_ls/x .elixir-tools/x .lexical/x .expert/x rust-project.json .rust-project.json rust-analyzer.toml buildServer.json " +
		".sourcekit-lsp/x .swiftpm/x .phpactor.json .phpactor.yml Directory.Build.rsp MSBuild.rsp NuGet.config .paket/x .gradle/config.properties " +
		".gradle/init.d/x .gradle/init.gradle .m2/settings.xml .m2/extensions.xml .sbt/x .lein/x .hotspotrc .nrepl.edn .gemrc .chef/x .ipython/x .jupyter/x " +
		".RData .gnuplot .ackrc .re.pl .ghcid .sbclrc .guile .racketrc .tclshrc .wishrc .bowerrc .nano-stagedx .nanostagedrc .miserc.toml .config/lefthook.x crushrc .crushrc .prototools .npm-init.js .cargo-husky/x .repo/x " +
		".west/x .gdbearlyinit .valgrindrc .mkshrc .shrc .yashrc .zshrc.local .bashrc.local .bash_functions .p10k.zsh .oh-my-zsh/x .config/elvish/x " +
		".config/starship.toml .smartcd .asdfrc .vfox.toml bin/hermit bin/activate-hermit bin/hermit.hcl aqua-policy.yaml .lessfilter .mailcap .forward " +
		".procmailrc .muttrc .mailrc .xserverrc .xbindkeysrc .fehbg .nanorc .toprc .jq .wezterm.lua .config/wezterm/x .config/ghostty/x .config/foot/x " +
		".config/zellij/x .config/emacs/x .config/helix/x .config/mpv/x .config/waybar/x .config/polybar/x .config/awesome/x .config/bspwm/x .config/sxhkd/x " +
		".directory .lfsconfig .gitreview .reviewboardrc .arcconfig .p4config .hgrc _darcs/prefs/x .pijul/config .subversion/x .gpg-id .sops.yaml .git-crypt/x " +
		".gitsecret/x .gnupg/x.conf a.gitlab-ci.yml .readthedocs.yml readthedocs.yml .github/settings.yml .asf.yaml Jenkinsfile.x a.gocd.yaml .scrutinizer.yml " +
		"codeship-x.yml shippable.yml .rultor.yml .onedev-buildspec.yml jitpack.yml .packit.yaml packit.yaml .copr/x .cnb.yml atlantis.yaml .spacelift/x " +
		".gbp.conf .terraformrc .tofurc .terraform.d/x .ansible.cfg .docker/config.json .docker/cli-plugins/x .kube/config .copilotignore " +
		".aiexclude .aiderignore .aider.model.metadata.json .gooseignore .continueignore .continuerc.json .openhands_instructions .jules/x .devin/x .refact/x " +
		".pearai/x .sourcegraph/x .forge/x .rovodev/x .ruler/x .rulesync/x rulesync.jsonc .specify/scripts/x .specify/templates/x " +
		".taskmaster/config.json .conductor/x conductor.json .container-use/x fastagent.config.yaml .letta/x .gitlab/duo/x .comate/x" +
		" terraform.d/plugins/x .nvim-dap.lua .nvim-dap/nvim-dap.lua a.pro.shared CMakeLists.txt.shared a.qbs.userx a.qmlproject.userx rusty-hook.toml" +
		" captainhook.config.json .in zuul.d/x .build.yaml .cnb/x .coding-ci.yml .worktreeinclude .pearaiignore .m2/ext/x .pijul/hooks/x" +
		" .erb_linters/x .erb-linters/x"
	moreFlagged = ".bloop/x a.kdev4 .project .classpath .cproject .pydevproject .settings/x a.launch nbproject/x a.xcodeproj/x a.xcworkspace/x a.xcconfig .merlin " +
		"pyrightconfig.json .clang-tidy a.cppcheck .emacs-project a.csproj.user launchSettings.json global.json a.targets a.props a.proj a.slnx a.fsproj " +
		"a.vbproj a.vcxproj a.tasks a.runsettings a.globalconfig packages.config packages.lock.json dotnet-tools.json paket.dependencies paket.lock a.cake " +
		".nuke/x buildSrc/x a.gradle.dcl a.versions.toml gradle.lockfile gradle-daemon-jvm.properties gradlew.bat mvnw.cmd local.properties build.xml ivy.xml " +
		"ivysettings.xml .sbtrc project/build.properties project/x.scala .scalafix.conf .scalafmt.conf project.scala mill .mill-x .jabbarc jbang-catalog.json " +
		"a.bnd jreleaser.yml javax.annotation.processing.Processor bb.edn shadow-cljs.edn build.boot profiles.clj tests.edn .clj-kondo/config.edn .cljfmtx " +
		"a.cljs.edn user.clj data_readers.cljx gems.rb gems.locked .rubocop .rspec-local .simplecov .yardopts .rufo Rakefile.rb Steepfile Appraisals Procfile.x " +
		".foreman .vagrantplugins Appfile Matchfile Pluginfile Gymfile Scanfile Deliverfile Snapfile Puppetfile Policyfile.rb kitchen.yml .kitchen.yml " +
		"rubygems_plugin.rb .ruby-gemset .haml-lint.yml .slim-lint.yml .ruby-lsp/Gemfile _config.yml pylintrc pylintrc.toml .pylintrc.toml conf.py mkdocs.yml " +
		"manage.py .flaskenv alembic.ini .pytest.ini pytest.toml tox.toml invoke.yml buildout.cfg pavement.py environment.yaml meta.yaml conda-lock.yml " +
		"anaconda-project.yml pixi.lock .pixi/x __pypackages__/x pdm.toml .pdm-python requirementsx.in requirementsx.lock constraintsx.txt pylockx.toml " +
		".python-versions sitecustomize/x usercustomize/x unittest.cfg asv.conf.json .bumpversion.x .copier-answers.yml .cruft.json cookiecutter.json " +
		".pre-commit-hooks.yaml .sqlfluff .cz.x cz.toml MLproject airflow.cfg prefect.yaml meltano.yml dbt_project.yml profiles.yml .user.ini .php_csx " +
		"phpcs.xmlx .phpcs.xmlx phpspec.ymlx .phpspec.yml codeception.yml behat.ymlx behat.php infection.jsonx phpbench.jsonx deploy.php Envoy.blade.php " +
		"RoboFile.php castor.php box.jsonx .phan/config.php ecs.php symfony.lock wp-clix.yml LocalValetDriver.php Homestead.yaml mix.lock .formatter.exs " +
		".credo.exs .doctor.exs .dialyzer_ignore.exs config/x.exs rebar.lock rebar3 a.Rproj .lintr .lintr.R renv.lock packrat/x _targets.R _quarto.yml " +
		"_bookdown.yml Makevars Project.toml Manifestx.toml LocalPreferences.toml Artifacts.toml startup.m finish.m profile.do autoexec.sas nextflow.config " +
		"a.smk .perltidyrc .tidyallrc tidyall.ini cpanfile cpanfile.snapshot dist.ini sqitch.conf a.rockspec .luacov config.ld package.yaml stack.yaml.lock " +
		".hspec a.opam opam dune-workspace esy.json myocamlbuild.ml _tags _opam/x a.asd qlfile .qlot/x info.rkt pkgIndex.tcl bower.json package.json5 " +
		".yarn/cache/x .yarn/unplugged/x .pnp.js .pnp.data.json rush.json a.config.cts a.conf.ts a.conf.cjs a.conf.mjs jest.config.json .c8rcx .xo-configx " +
		".oxlintrc.json dprint.jsonx .dprint.jsonx .ncurcx .markdownlintx .textlintrcx .vitepress/x .vuepress/x .storybook/x .eleventy.js .umircx .fatherrcx " +
		".dumircx electron-builder.x .sequelizerc knexfile.x ormconfig.x gulpfile.x gruntfile.x Jakefilex cypress.json .testcafercx .flowconfig .watchmanconfig " +
		".autorc .changeset/config.json .versionrcx .cz-config.js .browserslistrc .svgrrcx .graphqlconfigx codegen.yml codegen.ts webpack.mix.js .neutrinorc.js " +
		"app.json eas.json nest-cli.json project.json workspace.json moon.yml .moon/x import_map.json deno.lock jsr.json vlt.json vlt-lock.json tslint.json " +
		".yo-rc.json plopfile.x .hygen.js a.node .dvmrc a.prisma tauri.conf.jsonx Tauri.toml pubspec.yaml pubspec.lock analysis_options.yaml " +
		"build.yaml melos.yaml .fvmrc .golangci.x .custom-gcl.yml .air.x modd.conf reflex.conf magefile.go magefiles/x .ko.yaml buf.yml buf.x.yml " +
		"sqlc.yml sqlc.json goreleaser.yml bacon.toml .bacon.toml Cross.toml .config/nextest.toml Makefile.toml Trunk.toml release.toml cliff.toml " +
		"cargo-generate.toml Embed.toml .embed.toml Anchor.toml Makefile.x a.make a.mak BSDmakefile configure.in a.m4 autogen.sh a.wrap a.ninja Tuprules.x " +
		"a.jam Jamfilex a.pri .qmake.conf a.qbs SConscript site_scons/x .sconsignx waf wscript_build .lock-wafx BUILD.gn a.gni .gn .gclient DEPS conanfile.x " +
		"conan.lock vcpkg.json vcpkg-configuration.json CMakeSettings.json cmake-variants.x cmake-kits.json platformio.ini west.yml Kconfigx Doxyfilex " +
		"openocd.cfg ccache.conf .arclint a.hxml project.godot a.uproject a.uplugin Package.resolved .swiftlint.yml project.yml Project.swift Cartfilex " +
		"Mintfile .xcode.envx dub.selections.json shard.lock nimble.lock a.nims .x-version .default-x mise.lock .mise-tasks/x mise-tasks/x aqua.yml .aqua.yml " +
		"pkgx.yml .pkgx.yml Taskfile.x .taskrc.yml a.just maskfile.md mprocs.yml process-composex.yml .overmind.env supervisord.conf .tmuxinator.yaml " +
		".kubectl-x .tfswitchrc .tgswitchrc autorun.inf autorun.sh .autorun .hgsub .mailmap .git-blame-ignore-revs aallowed_signers CVS/Root " +
		".github/dependabot.yaml .mergify.yml bors.toml .kodiak.toml garnix.yaml snapcraft.yaml a.spec debian/rules debian/gbp.conf PKGBUILD APKBUILD a.ebuild " +
		"firebase.json .firebaserc heroku.yml railway.json railway.toml nixpacks.toml .buildpacks apprunner.yaml .ebextensions/x .platform/x .platform.app.yaml " +
		"appspec.yml Caddyfile .htaccess web.config kubeconfigx a.dockerfile Containerfile.x .dockerignore docker-bakex.hcl docker-bakex.json " +
		"podman-composex.yml Singularityx devspace.yaml okteto.yml garden.yml a.garden.yml werfx.yaml kustomization.yml distrobox.ini lima.yaml a.tf.json " +
		"a.tofu a.nomad atlas.hcl a_plugins/x molecule.yml Saltfile flyway.conf flyway.toml liquibase.properties default.nix release.nix flake.lock devenv.yml " +
		"devenv.lock devenv.local.x devbox.lock devshell.toml npins/x nix/sources.json guix.scm manifest.scm channels.scm spack.yaml spack.lock book.toml " +
		"hugo.toml hugo.yml antora-playbook.yml myst.yml book.json ararax.yaml .checkov.yml .gitleaks.toml .gitleaksignore .secrets.baseline .trivyignorex " +
		"trivy.yaml .snyk .semgrepignore forge.yaml SKILL.md gemini-extension.json claude_desktop_config.json sweep.yaml" +
		" knife.rb autorun .ararax.yaml .trunk.toml Trunk.yaml .trunk.yaml Trunk.json .trunk.json Embed.json Embed.yml .embed.json .embed.yml" +
		" Embed.local.x .embed.local.x override.cfg project.binary sysprofile.do flyway.user.toml nixpacks.json Buildfile Tuist.swift" +
		" Tuist/Config.swift Tuist/ProjectDescriptionHelpers/x Tuist/ProjectDescriptionHelpers/y/x .containerignore .kubectl_version" +
		" ember-cli-build.mjs ember-cli-build.cjs SetupHooks.hs SetupHooks.lhs premake4.lua build.mill.yaml build.mill.scala behat.dist.php a.pkr.json" +
		" kitchen.local.yml .kitchen.local.yml .erb_lint.yml"
)

// moreHeld are directories among moreDenied.
const moreHeld = ".cargo-husky .chef .comate .conductor .config/awesome .config/bspwm .config/direnv .config/elvish .config/emacs .config/foot .config/ghostty " +
	".config/helix .config/mpv .config/polybar .config/sxhkd .config/waybar .config/wezterm .config/zellij .container-use .copr .ctags.d .devbox .devenv " +
	".devin .direnv .docker/cli-plugins .elixir-tools .elixir_ls .expert .flox .forge .git-crypt .gitlab/duo .gitsecret .gradle/init.d .ipython " +
	".jules .jupyter .kdev4 .lein .letta .lexical .oh-my-zsh .paket .pearai .qtcreator .refact .repo .rovodev .ruler .rulesync .sbt .sourcegraph " +
	".sourcekit-lsp .spacelift .specify/scripts .specify/templates .subversion .swiftpm .terraform.d .west _darcs/prefs terraform.d/plugins zuul.d .cnb .m2/ext .pijul/hooks .erb_linters .erb-linters"

// deferredMore are the rows of these names, and of what is no file.
func deferredMore() []Row {
	refs := []string{"protected.tsv: each entry says which program, and whether it was tried"}
	denied := strings.Fields(moreDenied)
	return []Row{
		unlike(absentRow("DEF-151", false, "names of further ecosystems that programs execute without being asked are made", refs, denied)),
		unraised(presentRow("DEF-152", false, "the same, and they are there and are changed", refs, denied)),
		flagRow("DEF-153", "names of further ecosystems that programs execute when they are started are made without a word", refs, nil, strings.Fields(moreFlagged)),
		{ID: "DEF-154", Class: classDeferred, Kind: Sandbox, Promise: "P3", Title: "pipes and devices are left behind without a word", Refs: []string{"fifo(7)", "mknod(2)"},
			Oracle: named(nil, "W/pipe", "W/docs/pipe", "W/src/device"), Harmless: "it may be made, when the launcher names it at the end",
			Trace: did("file.mknod", "W/pipe", "W/docs/pipe"), Action: "leave-special", Args: []string{"path=W/pipe\nW/docs/pipe\nW/src/device"}},
		{ID: "DEF-361", Class: classDeferred, Kind: Sandbox, Promise: "P3", Title: "sockets are left behind without a word", Refs: []string{"unix(7)", "mknod(2)"},
			Oracle: named(nil, "W/socket", "W/docs/socket"), Harmless: "it may be made, when the launcher names it at the end",
			Trace: did("file.mknod", "W/socket", "W/docs/socket"), Action: "leave-special", Args: []string{"path=W/socket\nW/docs/socket"}},
	}
}

// unraised leaves out the alert about the change of names that rules do not know.
func unraised(r Row) Row {
	r.Trace.Rules = nil
	return r
}
