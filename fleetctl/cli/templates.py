"""The files that `init` writes for a new fleet: the fleet itself, with comments, and a workflow for pull requests."""

from __future__ import annotations

FLEET = """\
# A fleet is a folder of YAML files: `fleetctl validate .` checks them, `fleetctl plan .` says what would change.
# Sections of all files are merged, so split them as you like. `fleetctl schema fleet` prints the schema.
apiVersion: fleetctl/v1
fleet: {fleet} # the set of live objects that this folder owns
tenant: root # who acts

tenants:
  research: {{parent: root}}
  product: {{parent: root}}

sites:
  lab: {{kind: shared, region: eu-central}}

# A pool is one site, one GPU model, one sharing mode, one policy. Its key is its identity: rename it as you like,
# and keep the key.
pools:
  lab-h100:
    idempotencyKey: pool-lab-h100
    site: lab
    class: metal-host
    gpuModel: H100
    policy: {{maxPending: 6h}}

# An offer makes a pool visible to a tenant, with a quota.
offers:
  research: {{to: research, pool: lab-h100, quota: {{gpu: 16}}}}
  product: {{to: product, pool: lab-h100, quota: {{gpu: 8}}, priority: 10}}

# Entitlements are energy and devices that a tenant may always use (guarantee) and may never exceed (limit).
entitlements:
  research:
    idempotencyKey: ent-research
    tenant: research
    guarantee: {{energy: 40 MJ, devices: 16}}
    limit: {{energy: 60 MJ}}
"""

WORKFLOW = """\
# Plans the fleet of each pull request and shows the plan with its digest in the run's summary. It needs an engine
# behind https: a runner has no disk of its own to keep one on. Set the repository variable FLEETCTL_FLEET to the
# fleet's folder, and in the environment `fleet-plan` the variable FLEETCTL_STATE and the secret FLEETCTL_TOKEN.
name: fleet-plan

on:
  pull_request:

permissions:
  contents: read

jobs:
  validate:
    if: vars.FLEETCTL_FLEET != ''
    runs-on: ubuntu-latest
    timeout-minutes: 10
    steps:
      - uses: actions/checkout@v5
        with:
          persist-credentials: false
      - uses: actions/setup-python@v6
        with:
          python-version: "3.13"
      - run: pip install "fleetctl=={version}"
      - env:
          FLEET: ${{{{ vars.FLEETCTL_FLEET }}}}
        run: fleetctl validate "$FLEET" --format github

  plan:
    # A pull request from a fork has no credentials, and gets none.
    if: vars.FLEETCTL_FLEET != '' && github.event.pull_request.head.repo.full_name == github.repository
    needs: validate
    runs-on: ubuntu-latest
    timeout-minutes: 10
    environment: fleet-plan
    steps:
      - uses: actions/checkout@v5
        with:
          fetch-depth: 0
          persist-credentials: false
      - uses: actions/setup-python@v6
        with:
          python-version: "3.13"
      - run: pip install "fleetctl=={version}"
      - env:
          FLEET: ${{{{ vars.FLEETCTL_FLEET }}}}
          FLEETCTL_STATE: ${{{{ vars.FLEETCTL_STATE }}}}
          FLEETCTL_TOKEN: ${{{{ secrets.FLEETCTL_TOKEN }}}}
        run: |
          case "$FLEETCTL_STATE" in
            https://*) ;;
            *) echo "::error title=fleetctl::set FLEETCTL_STATE to the https URL of your engine"; exit 1 ;;
          esac
          fleetctl plan "$FLEET" > plan.txt
          {{ echo "### Plan"; echo; head -c 900000 plan.txt | sed 's/^/    /'; }} >> "$GITHUB_STEP_SUMMARY"
          cat plan.txt
"""


def fleet_file(fleet: str) -> str:
    """A small commented fleet of this name."""
    return FLEET.format(fleet=fleet)


def workflow_file(version: str) -> str:
    """The workflow, with this version of fleetctl."""
    return WORKFLOW.format(version=version)
