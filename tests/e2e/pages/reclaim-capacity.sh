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
  department: {idempotencyKey: ent-department, tenant: lab, guarantee: {energy: 0 J, devices: 0}}
  vision:
    {idempotencyKey: ent-vision, parent: department, tenant: lab, guarantee: {energy: 10 MJ, devices: 16}, overQuotaWeight: 1}
  speech:
    {idempotencyKey: ent-speech, parent: department, tenant: lab, guarantee: {energy: 40 MJ, devices: 16}, overQuotaWeight: 1}
YAML
git init --quiet --initial-branch=main
fleetctl init --engine eng_labs --no-example
git add .
git commit --quiet --message "The fleet"
fleetctl apply . --yes
for claim in c1 c2; do
    fleetctl claims admit --entitlement ent-vision --claim $claim --devices 4 --energy 9MJ --grade ModelBased --class train
done
