. "$PAGES/quickstart.sh"
fleetctl quotas set pool-fra1-h100 acme gpu=48
