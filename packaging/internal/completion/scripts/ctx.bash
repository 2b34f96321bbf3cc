# Completion of ctx in bash: ctx knows what its words can be.
_ctx() {
	local word=${COMP_WORDS[COMP_CWORD]} line
	[[ $word == = ]] && word=
	COMPREPLY=()
	while IFS= read -r line; do
		line=${line%%$'\t'*}
		case $line in
		:files) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
		:directories) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
		*) COMPREPLY+=("$line") ;;
		esac
	done < <("$1" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _ctx ctx
