package workspace

import (
	"path"
	"slices"
	"strings"
)

// Usual are the entries at the top of a workspace that are shown read-only, where
// they exist, to an agent without a protect control: other programs of a person
// act on them without being asked, by what is written in them
// (docs/reference/changes.md). Each is one path component, because a mount further
// down is undone by renaming its parent. Repository metadata is shown read-only
// whatever the control says.
func Usual() []string { return slices.Clone(usual) }

var usual = strings.Fields(repositories + shells + editors + hooks + settings + agents)

// metadata are the names of repository directories, which hold hooks and
// configuration that the human's own tools execute.
var metadata = []string{".git", ".hg", ".svn", ".jj"}

// bare are the names in a directory that is a repository of git itself, without a
// .git. Those of the first three make it one.
var bare = []string{"HEAD", "objects", "refs", "config", "config.worktree", "hooks", "info", "packed-refs", "modules", "worktrees"}

const (
	repositories = `
	.git .hg .svn .jj .bzr _darcs .gitmodules .gitconfig .lfsconfig`

	// Read by shells and sessions as they start, or on entering the directory.
	shells = `
	.envrc .direnv .autoenv .tool-versions .mise .mise.toml .mise.local.toml mise.toml mise.local.toml
	.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .kshrc .cshrc .tcshrc .login
	.zshrc .zshenv .zprofile .zlogin .zlogout .inputrc .xinitrc .xprofile .xsession .xsessionrc .pam_environment`

	// Tasks, launchers and settings of editors.
	editors = `
	.vscode .idea .vs .fleet .zed .nova .helix .theia .devcontainer .devcontainer.json
	.settings .project .externalToolBuilders
	.vim .vimrc .lvimrc .exrc .nvim .nvimrc .nvim.lua .lazy.lua .emacs .emacs.d .dir-locals.el .dir-locals-2.el`

	// Folders of hooks, and what says which hooks there are.
	hooks = `
	.husky .githooks .git-hooks .lefthook lefthook.yml lefthook.yaml lefthook-local.yml .lefthook.yml .lefthook.yaml
	.lefthook-local.yml .pre-commit-config.yaml .overcommit.yml`

	// Settings that make a tool run, fetch or trust something.
	settings = `
	.config .local .ssh .gnupg .netrc .docker .kube .aws
	.npmrc .yarnrc .yarnrc.yml .cargo .bazelrc .pypirc .curlrc .wgetrc .ripgreprc .mailcap .tmux.conf .screenrc
	.gdbinit .gdbearlyinit .lldbinit .pdbrc .perldb .ghci .irbrc .pryrc .Rprofile .octaverc .ocamlinit .iex.exs .erlang .psqlrc .sqliterc`

	// What this and other agents read as their configuration.
	agents = `
	.agents .agent .ctx .cortexfs .octet .mcp .mcp.json .claude .claude.json .codex .gemini .qwen .copilot .amazonq
	.cursor .cursorrules .windsurf .windsurfrules .cline .clinerules .roo .roomodes .kilocode .continue .aider.conf.yml
	.opencode opencode.json opencode.jsonc .crush .crush.json crush.json .goose .goosehints .junie .augment .kiro .trae
	.factory .amp .pi .openhands`

	// Texts that agents take as instructions, and files that are opened as a whole
	// project. An agent may be told to write them, so they are only watched.
	watched = `
	agents.md agents.override.md claude.md claude.local.md gemini.md qwen.md crush.md`
	watchedEndings = `.code-workspace .sublime-project .desktop`
)

// Sensitive reports whether an entry of this name, in whatever directory, is one
// that other programs act on by themselves: one of Usual, a text that agents take
// as instructions, a file that opens a project. Letters count in either case, for
// file systems that do not tell them apart.
func Sensitive(name string) bool {
	name = strings.ToLower(name)
	return sensitive[name] || endings[path.Ext(name)] && path.Ext(name) != name
}

// usualNames are the names of Usual by their lower case.
var usualNames = func() map[string]string {
	names := map[string]string{}
	for _, name := range usual {
		names[strings.ToLower(name)] = name
	}
	return names
}()

var sensitive, endings = lowered(usual, strings.Fields(watched)), lowered(strings.Fields(watchedEndings))

func lowered(lists ...[]string) map[string]bool {
	set := map[string]bool{}
	for _, list := range lists {
		for _, name := range list {
			set[strings.ToLower(name)] = true
		}
	}
	return set
}
