. "$PAGES/quickstart.sh"
cp "$XDG_STATE_HOME/fleetctl/eng_quickstart/steward.pub.pem" .
