#!/usr/bin/env bash
# The main job, end to end, on examples/quickstart: an engine with keys, a witness as a process of its own, plan, show, apply,
# drift, then a quota below what is in use: refused, accepted in the file, applied, and both ledgers verified as witnessed.
#
# Run by `make demo` in a home folder of its own (scripts/clean-home.sh). Every command is shown as it is run.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/fleetctl-demo.XXXXXX")
witness=
finish() {
    [ -z "$witness" ] || kill "$witness" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

# Fixed names and dates give the same commits everywhere, and nobody's own git settings take part.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=demo GIT_AUTHOR_EMAIL=demo@example.org GIT_AUTHOR_DATE=2026-12-01T08:00:00Z
export GIT_COMMITTER_NAME=demo GIT_COMMITTER_EMAIL=demo@example.org GIT_COMMITTER_DATE=2026-12-01T08:00:00Z
export FLEETCTL_WIDTH=100

say() { printf '\n# %s\n' "$*"; }
run() { # run EXPECTED-EXIT COMMAND-LINE
    local expected=$1 line=$2 got=0
    printf '\n$ %s\n' "$line"
    eval "$line" || got=$?
    if [ "$got" != 0 ]; then printf '(exit %s)\n' "$got"; fi
    if [ "$got" != "$expected" ]; then
        printf 'demo: `%s` ended with %s, expected %s\n' "$line" "$got" "$expected" >&2
        exit 1
    fi
}
wait_for_witness() { # until it has printed its URL
    for _ in $(seq 1 300); do
        if [ -s ../witness.url ]; then return; fi
        kill -0 "$witness" 2>/dev/null || break
        sleep 0.1
    done
    if ! [ -s ../witness.url ]; then
        printf 'demo: the witness did not start\n' >&2
        exit 1
    fi
}

mkdir "$work/fleet"
cp "$here"/examples/quickstart/*.yaml "$work/fleet"
cd "$work/fleet"

say "A fleet in git, a new engine with keys, and a witness with keys of its own"
run 0 'git init --quiet --initial-branch=main'
run 0 'fleetctl init --engine eng_demo --no-example'
run 0 'git add . && git commit --quiet --message "The fleet"'

say "The witness runs as a process of its own, here on any free port"
run 0 'fleetctl witness serve --id witness-demo >../witness.url &'
witness=$!
wait_for_witness
run 0 'export FLEETCTL_WITNESS=$(cat ../witness.url)'

say "Plan into a file, look at it, apply exactly that"
run 0 'fleetctl validate .'
run 0 'fleetctl plan . -o ../plan.json >../plan.txt'
run 0 'fleetctl show ../plan.json'
run 0 'fleetctl apply ../plan.json --require-witness'
run 0 'fleetctl drift .'

say "A tenant uses the pool"
run 0 'fleetctl nodes join --pool pool-fra1-h100 --name node-1 --gpus 8'
run 0 'fleetctl reservations create --tenant acme --pool pool-fra1-h100 --gpus 6 \
    --entitlement ent-acme-training --energy 5MJ --grade ModelBased --key train-1'

say "A change in git: the quota falls below what is in use, and apply refuses it"
run 0 "sed -i.old 's/quota: {gpu: 32}/quota: {gpu: 4}/' fleet.yaml && rm fleet.yaml.old"
run 0 'git commit --quiet --all --message "Less for acme"'
run 0 'fleetctl plan . -o ../shrink.json'
run 3 'fleetctl apply ../shrink.json --require-witness'

say "Accepted in the file, where reviewers see it, and applied"
run 0 'cat >>fleet.yaml <<YAML

accept:
  - {danger: "shrink-below-use:offer/pool-fra1-h100/acme", reason: agreed with acme, until: 2099-12-31}
YAML'
run 0 'git commit --quiet --all --message "Agreed with acme"'
run 0 'fleetctl plan . -o ../accepted.json --fail-on-danger >../accepted.txt'
run 0 'fleetctl check ../accepted.json'
run 0 'fleetctl apply ../accepted.json --require-witness'
run 0 'fleetctl drift .'

say "Both ledgers, every signature, as witnessed"
run 0 'fleetctl ledger witness'
run 0 'fleetctl ledger verify'
