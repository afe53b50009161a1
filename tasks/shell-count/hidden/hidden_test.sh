set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
script=$PWD/count.sh
cd "$directory"
printf 'a\nb' > "no end"
printf 'a\n' > -l
: > empty
[ "$(bash "$script" "no end")" = "2 no end" ]
[ "$(bash "$script" "no end" -l empty)" = "2 no end
1 -l
0 empty
3 total" ]
echo 1 passed
