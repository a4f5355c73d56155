. "$PAGES/quickstart.sh"
sed -i.old 's/quota: {gpu: 32}/quota: {gpu: 4}/' fleet.yaml
