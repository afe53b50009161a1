set -u
fail() { echo "failed: $1" >&2; exit 1; }
[ "$(bash greet.sh)" = "Hello, world" ] || fail default
[ "$(bash greet.sh --name "a b")" = "Hello, a b" ] || fail name
[ "$(bash greet.sh --name=x=y --loud)" = "HELLO, X=Y" ] || fail equals
[ "$(bash greet.sh -- --name q)" = "Hello, world" ] || fail separator
for wrong in "--nmae x" "--name" "-x"; do
    output=$(bash greet.sh $wrong 2>/dev/null)
    [ $? -eq 2 ] || fail "$wrong: exit code"
    [ -z "$output" ] || fail "$wrong: output"
    [ -n "$(bash greet.sh $wrong 2>&1 >/dev/null)" ] || fail "$wrong: message"
done
echo 1 passed
