#!/bin/sh
# The defaults of everyday use, over ctx:
#
#   agent.sh AGENT            talk with an agent
#   agent.sh AGENT INPUT...   send it something
#   agent.sh --watch AGENT    look at its terminal
#   agent.sh --attach AGENT   use its terminal
set -eu

if ! ctx=$(command -v ctx); then
	here=$(dirname -- "$(readlink -f -- "$0")")
	ctx=$here/ctx # where it is installed
	[ -f "$ctx" ] || ctx=$here/bin/ctx
fi

case ${1-} in
--watch | --attach)
	[ $# -eq 2 ] || { echo "agent.sh: $1 takes one AGENT" >&2; exit 2; }
	exec "$ctx" agent "${1#--}" "$2" --session default
	;;
'' | -*)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac

agent=$1
shift
[ $# -gt 0 ] || exec "$ctx" agent chat "$agent" --session default
case $1 in
-) ;;
-*) set -- -- "$@" ;; # a word of the input, not a flag
esac
exec "$ctx" agent send "$agent" --session default "$@"
