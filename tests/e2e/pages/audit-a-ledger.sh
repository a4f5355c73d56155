. "$PAGES/quickstart.sh"
cp "$XDG_STATE_HOME/fleetctl/eng_quickstart/steward.pub.pem" .
fleetctl witness init --id audit-1 --steward-key steward.pub.pem --steward root-steward
cp "$XDG_STATE_HOME/fleetctl/witness/audit-1/witness.pub.pem" audit-1.pub.pem
fleetctl claims admit --entitlement ent-acme-training --claim train-1 --devices 8 --energy 5MJ --grade ModelBased
fleetctl settings set witnesses audit-1=audit-1.pub.pem
fleetctl witness serve --id audit-1 >"$FIRST_LINE" &
await_first_line
fleetctl ledger witness --witness "audit-1=$(cat "$FIRST_LINE")"
