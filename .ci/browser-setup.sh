#!/usr/bin/env bash
# Makes sure that a Chromium for the browser tests is there: does nothing where one is, installs Debian's where none is.
# Usage: bash .ci/browser-setup.sh   (root; part of CI, harmless to repeat)
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then
        echo "browser: $(command -v "$name")"
        exit 0
    fi
done
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
echo "browser: $(command -v chromium)"
