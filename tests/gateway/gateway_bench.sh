#!/usr/bin/env bash
# What one gateway costs: streamed chunks per second, and the time to the first one with and without
# it, all on the same processors. A stub server streams one token per message.
#
# usage: gateway_bench.sh [FLAGS OF tandem_load]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -r "$folder"' EXIT

# start NAME COMMAND...: prints the address that the program says it listens on.
start() {
  local name=$1
  shift
  "$@" >"$folder/$name" 2>"$folder/$name.log" &
  until grep -q ready "$folder/$name"; do
    kill -0 $! || { cat "$folder/$name.log"; exit 1; }
    sleep 0.05
  done
  grep -o '127\.0\.0\.1:[0-9]*' "$folder/$name" >"$folder/$name.address"
}

# load TITLE FLAGS...
load() {
  echo "== $1"
  shift
  tests/load/tandem_load --random-input-len 128 --ignore-eos "$@" |
    grep -E 'Output token throughput|Median TTFT|P99 TTFT|Median ITL|Successful'
}

start fast tests/load/tandem_stub_server --listen 127.0.0.1:0
start slow tests/load/tandem_stub_server --listen 127.0.0.1:0 --token-interval 20ms
for stub in fast slow; do
  start "$stub-http" gateway/tandem_gateway --listen 127.0.0.1:0 --server "$(<"$folder/$stub.address")"
  until grep -q ': serving' "$folder/$stub-http.log"; do sleep 0.05; done
done

most=(--num-prompts 200 --max-concurrency 32 --random-output-len 500)
moderate=(--num-prompts 300 --request-rate 20 --random-output-len 50)
load 'as fast as possible, through the gateway' --backend openai --server "$(<"$folder/fast-http.address")" "${most[@]}" "$@"
load '20 requests per second of 50 tokens, one per 20 ms: gRPC, without the gateway' --server "$(<"$folder/slow.address")" "${moderate[@]}" "$@"
load 'the same through the gateway' --backend openai --server "$(<"$folder/slow-http.address")" "${moderate[@]}" "$@"
