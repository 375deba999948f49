#!/bin/sh
# Runs every test of the Neovim plugin: the unit tests, and the stories that a real Neovim in tmux
# plays with the real server and a real model.
#
#   run.sh NVIM BIN_DIR [MODELS_DIR] [PATTERN]
#
# NVIM        the nvim to test, 0.11 or newer  (or $NVIM)
# BIN_DIR     folder with hone's binaries      (or $HONE_BIN)
# MODELS_DIR  folder with the model files      (or $HONE_MODELS; smollm2-135m is served)
# PATTERN     run only the tests that match this Lua pattern, such as `repeats: ` for a file
set -eu

tests=$(cd "$(dirname "$0")" && pwd)
usage='usage: run.sh NVIM BIN_DIR MODELS_DIR [PATTERN]'
NVIM=${1:-${NVIM:?$usage}}
HONE_BIN=${2:-${HONE_BIN:?$usage}}
HONE_MODELS=${3:-${HONE_MODELS:?$usage}}
export NVIM HONE_BIN HONE_MODELS
command -v tmux >/dev/null || { echo "tmux is missing; install it" >&2; exit 1; }

exec "$NVIM" -u NONE -i NONE -l "$tests/main.lua" "${4:-}"
