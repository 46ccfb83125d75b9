#!/usr/bin/env bash
# How many streamed tokens per second tandem_load takes in, from a stub server on the same
# processors: one token per message, 64 requests in flight.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
folder=$(mktemp -d)
./tandem_stub_server >"$folder/ready" &
server=$!
trap 'kill $server; rm -r "$folder"' EXIT
until [[ -s $folder/ready ]]; do sleep 0.05; done
./tandem_load --server "$(sed 's/.*listening on //' "$folder/ready")" --num-prompts 4000 \
  --max-concurrency 64 --random-input-len 128 --random-output-len 256 "$@"
