# A witness that has signed two applies, a backup of the first, a bundle of the second, and the disk is gone.
. "$PAGES/quickstart.sh"
fleetctl witness serve --id witness-quickstart --listen 127.0.0.1:0 >"$FIRST_LINE" &
await_first_line
export FLEETCTL_WITNESS=$(cat "$FIRST_LINE")
fleetctl ledger witness
fleetctl state backup ../backup.db
sed -i.old 's/quota: {gpu: 32}/quota: {gpu: 24}/' fleet.yaml && rm fleet.yaml.old
git commit --quiet --all --message "Less for acme"
fleetctl apply . --yes
fleetctl claims admit --entitlement ent-acme-training --claim train-1 --devices 8 --energy 5MJ --grade ModelBased
fleetctl ledger witness
fleetctl ledger export --bundle ../audit-2026-12
rm "$XDG_STATE_HOME"/fleetctl/eng_quickstart/state.db*
