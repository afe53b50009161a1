set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
log=$directory/"my log"
for number in 1 2 3 4 5; do
    echo "$number" > "$log"
    bash rotate.sh "$log"
    [ ! -s "$log" ]
done
[ "$(cat "$log.1")" = 5 ]
[ "$(cat "$log.2")" = 4 ]
[ "$(cat "$log.3")" = 3 ]
[ ! -e "$log.4" ]
echo 1 passed
