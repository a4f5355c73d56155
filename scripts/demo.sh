#!/usr/bin/env bash
# The main job, end to end, on examples/quickstart: init, a witness of its own, plan, show, apply, drift, then a quota
# below use: refused, accepted in the file, applied, and both ledgers verified as witnessed.
#
# Run by `make demo` in a home folder of its own. Every command is shown as it is run.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
witness=
trap '[ -z "$witness" ] || kill "$witness" 2>/dev/null || true; rm -rf "$work"' EXIT

export GIT_AUTHOR_NAME=demo GIT_AUTHOR_EMAIL=demo@example.org GIT_COMMITTER_NAME=demo GIT_COMMITTER_EMAIL=demo@example.org
export GIT_AUTHOR_DATE=2026-12-01T08:00:00Z GIT_COMMITTER_DATE=2026-12-01T08:00:00Z GIT_CONFIG_GLOBAL=/dev/null
export COLUMNS=100 FLEETCTL_WIDTH=100

say() { printf '\n# %s\n' "$*"; }
run() { # run EXPECTED-EXIT COMMAND…
    local expected=$1 got=0
    shift
    printf '\n$ %s\n' "$*"
    "$@" || got=$?
    [ "$expected" = 0 ] || printf '(exit %s)\n' "$got"
    if [ "$got" != "$expected" ]; then
        printf 'demo: `%s` ended with %s, expected %s\n' "$*" "$got" "$expected" >&2
        exit 1
    fi
}
commit() { git add -A && git commit --quiet --message "$1"; }

cd "$work"
mkdir fleet && cp "$here"/examples/quickstart/*.yaml fleet/
cd fleet
git init --quiet --initial-branch=main .

say "A new engine with keys, and a witness with keys of its own"
run 0 fleetctl init . --engine eng_demo --no-example
commit "The fleet"

say "The witness runs as a process of its own"
address=$(sed -n 's|.*url = "http://\([^"]*\)".*|\1|p' "$XDG_CONFIG_HOME/fleetctl/config.toml")
printf '\n$ fleetctl witness serve --id witness-demo --listen %s &\n' "$address"
fleetctl witness serve --id witness-demo --listen "$address" >"$work/witness.log" 2>&1 &
witness=$!
for _ in $(seq 1 100); do
    if [ -s "$work/witness.log" ]; then break; fi
    sleep 0.1
done
cat "$work/witness.log"

say "Plan, look, apply exactly that"
run 0 fleetctl validate .
run 0 fleetctl plan . -o "$work/plan.json"
run 0 fleetctl show "$work/plan.json" --format json --width 100 >"$work/shown.json"
run 0 fleetctl apply "$work/plan.json" --require-witness
run 0 fleetctl drift .

say "A tenant uses the pool"
run 0 fleetctl nodes join --pool pool-fra1-h100 --name node-1 --gpus 8
run 0 fleetctl reservations create --tenant acme --pool pool-fra1-h100 --gpus 6 --entitlement ent-acme-training --energy 5MJ --grade ModelBased --key train-1

say "A change in git: the quota falls below what is in use"
sed -i 's/quota: {gpu: 32}/quota: {gpu: 4}/' fleet.yaml
commit "Less for acme"
run 0 fleetctl plan . -o "$work/shrink.json"
run 3 fleetctl apply "$work/shrink.json" --require-witness

say "Accepted in the file, where reviewers see it"
cat >>fleet.yaml <<'YAML'

accept:
  - {danger: "shrink-below-use:offer/pool-fra1-h100/acme", reason: agreed with acme, until: 2099-12-31}
YAML
commit "Agreed with acme"
run 0 fleetctl plan . -o "$work/accepted.json"
run 0 fleetctl apply "$work/accepted.json" --require-witness
run 0 fleetctl drift .

say "Both ledgers, every signature, as witnessed"
run 0 fleetctl ledger witness
run 0 fleetctl ledger verify
