# The ground of most how-to pages: examples/quickstart in git, applied on a new engine, with 8 GPUs of which acme holds 6.
. "$PAGES/git.sh"
mkdir fleet
cp "$EXAMPLES"/quickstart/*.yaml fleet
cd fleet
git init --quiet --initial-branch=main
fleetctl init --engine eng_quickstart --no-example
git add .
git commit --quiet --message "The fleet"
fleetctl apply . --yes
fleetctl nodes join --pool pool-fra1-h100 --name node-1 --gpus 8
fleetctl reservations create --tenant acme --pool pool-fra1-h100 --gpus 6
