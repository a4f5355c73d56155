. "$PAGES/git.sh"
mkdir fleet
cd fleet
cat >fleet.yaml <<'YAML'
apiVersion: fleetctl/v1
fleet: labs
tenant: root
tenants:
  lab: {parent: root}
entitlements:
  research: {idempotencyKey: ent-research, tenant: lab, guarantee: {energy: 0 J, devices: 0}, period: 7d}
  vision: {idempotencyKey: ent-vision, parent: research, tenant: lab, guarantee: {energy: 100 MJ, devices: 16}}
YAML
git init --quiet --initial-branch=main
export FLEETCTL_NOW=2026-11-30T00:00Z
fleetctl init --engine eng_labs --no-example --test-clock
git add .
git commit --quiet --message "The fleet"
fleetctl apply . --yes
for claim in c9 c10; do
    fleetctl claims admit --entitlement ent-vision --claim $claim --devices 4 --energy 40MJ --grade ModelBased
done
fleetctl claims report --claim c9 --units 40 --energy 15MJ --grade HwShunt
cp "$XDG_STATE_HOME/fleetctl/eng_labs/steward.pub.pem" .
export FLEETCTL_NOW=2026-12-07T00:05Z
