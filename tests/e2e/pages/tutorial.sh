. "$PAGES/git.sh"
