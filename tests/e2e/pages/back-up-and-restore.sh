. "$PAGES/quickstart.sh"
mkdir ../backup ../staging ../new
