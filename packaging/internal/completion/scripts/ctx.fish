# Completion of ctx in fish: ctx knows what its words can be.
function __ctx_complete
	set -l words (commandline -opc) (commandline -ct)
	for line in ($words[1] complete -- $words[2..-1] 2>/dev/null)
		switch $line
			case ':files*'
				__fish_complete_path $words[-1]
			case ':directories*'
				__fish_complete_directories $words[-1]
			case '*'
				echo $line
		end
	end
end
complete -c ctx -f -a '(__ctx_complete)'
