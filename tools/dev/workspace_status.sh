#!/usr/bin/env bash
# Prints what `bazel build --stamp` links into programs, under Bazel's names; a change relinks
# nothing.
[[ -e .git ]] || exit 0  # an unpacked archive, perhaps inside another checkout
commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
echo "BUILD_SCM_REVISION $commit"
git diff --quiet HEAD -- 2>/dev/null || echo "BUILD_SCM_STATUS modified"
