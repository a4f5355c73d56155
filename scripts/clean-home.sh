#!/usr/bin/env bash
# Runs a command with empty user folders and no fleetctl settings, and removes the folders afterwards.
# usage: clean-home.sh COMMAND [ARGUMENT]...
set -euo pipefail

home=$(mktemp -d "${TMPDIR:-/tmp}/fleetctl-home.XXXXXX")
trap 'rm -rf "$home"' EXIT
for name in $(compgen -e FLEETCTL_ || true); do unset "$name"; done
export XDG_CONFIG_HOME="$home/config" XDG_STATE_HOME="$home/state" XDG_CACHE_HOME="$home/cache" XDG_DATA_HOME="$home/data"
mkdir "$XDG_CONFIG_HOME" "$XDG_STATE_HOME" "$XDG_CACHE_HOME" "$XDG_DATA_HOME"
"$@"
