#!/bin/sh
# install-neighbours.sh DEST: fetches the plugins of other authors that neighbours.lua tries.
set -eu
mkdir -p "$1"
cd "$1"

# fetch NAME OWNER/REPOSITORY COMMIT
fetch() {
  [ -e "$1/.git" ] && [ "$(git -C "$1" rev-parse HEAD)" = "$3" ] && return
  rm -rf "$1"
  git init --quiet "$1"
  git -C "$1" fetch --quiet --depth 1 "https://github.com/$2" "$3"
  git -C "$1" checkout --quiet FETCH_HEAD
}

fetch blink.cmp Saghen/blink.cmp 73ea297bc665c936b51797d5a55599536ffee0d8
fetch nvim-cmp hrsh7th/nvim-cmp a1d504892f2bc56c2e79b65c6faded2fd21f3eca
fetch cmp-buffer hrsh7th/cmp-buffer b74fab3656eea9de20a9b8116afa3cfc4ec09657
fetch copilot.vim github/copilot.vim 9484e35cf222e9360e05450622a884f95c662c4c
