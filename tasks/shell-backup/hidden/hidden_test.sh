set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
script=$PWD/backup.sh
cd "$directory"
echo one > "a b.txt"
bash "$script" "a b.txt"
[ "$(cat "a b.txt.bak")" = one ]
echo two > "a b.txt"
bash "$script" "a b.txt"
[ "$(cat "a b.txt.bak")" = one ]
[ "$(cat "a b.txt.bak.1")" = two ]
echo three > "a b.txt"
bash "$script" "a b.txt"
[ "$(cat "a b.txt.bak.2")" = three ]
echo 1 passed
