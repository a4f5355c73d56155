# Somebody whom git knows, whatever the machine's own settings are.
export GIT_AUTHOR_NAME=somebody GIT_AUTHOR_EMAIL=somebody@example.org
export GIT_COMMITTER_NAME=somebody GIT_COMMITTER_EMAIL=somebody@example.org
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
