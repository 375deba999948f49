#!/bin/sh
# Publishes the folder `neovim` of a commit as the head of a repository of its own, because plugin
# managers expect `lua`, `plugin` and `doc` at the root. Our licences come along.
#
#   neovim.sh REPOSITORY TAG
#
# REPOSITORY  where it is pushed to
# TAG         a tag of this repository, which the pushed commit gets too
set -eu

usage='usage: neovim.sh REPOSITORY TAG'
repository=${1:?$usage}
tag=${2:?$usage}

# An index of its own leaves the user's alone.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export GIT_INDEX_FILE="$folder/index"

git read-tree "$tag:neovim"
for licence in LICENSE LICENSE-APACHE LICENSE-MIT; do
  git update-index --add --cacheinfo "100644,$(git rev-parse "$tag:$licence"),$licence"
done
tree=$(git write-tree)

# The first release has no parent.
if git ls-remote --exit-code --heads "$repository" main >/dev/null; then
  git fetch --quiet "$repository" main
  parent=$(git rev-parse FETCH_HEAD)
  commit=$(git commit-tree "$tree" -p "$parent" -m "Hone $tag")
else
  commit=$(git commit-tree "$tree" -m "Hone $tag")
fi
git push "$repository" "$commit:refs/heads/main" "$commit:refs/tags/$tag"
