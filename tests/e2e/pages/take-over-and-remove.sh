. "$PAGES/quickstart.sh"
fleetctl pools create pool-fra1-l40s --site fra1 --class metal-host --gpu-model L40S
