#!/usr/bin/env bash
# Serves the demo model with two worker processes on the CPU, has it tell a story and answer a question, and keeps serving.
# With --once it ends there and leaves nothing behind. Programs: bin/, made by `./dev build`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

model=models/demo.gguf
once=false
case $* in
  '') ;;
  --once) once=true ;;
  *) echo "usage: ./dev demo [--once]" >&2; exit 2 ;;
esac

# In bold on a terminal, plain into a file or pipe.
bold= plain=
[[ -t 1 ]] && bold=$'\033[1m' plain=$'\033[0m'
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

log=$(mktemp)
server=
cleanup() {
  if [[ -n $server ]]; then
    kill -TERM "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -f "$log"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

say "Starting a coordinator and two workers: bin/tandem_coordinator --model $model --tensor-parallel-size 2"
listen=127.0.0.1:50051
$once && listen=127.0.0.1:0  # a single run may coexist with a running server
bin/tandem_coordinator --model "$model" --tensor-parallel-size 2 --listen "$listen" >"$log" 2>&1 &
server=$!
while ! grep -q '^ready: ' "$log"; do
  if ! kill -0 "$server" 2>/dev/null; then
    cat "$log" >&2
    exit 1
  fi
  sleep 0.1
done
grep '^ready: ' "$log"
address=$(sed -n 's/^ready: listening on \([^,]*\),.*/\1/p' "$log")
bin/tandem wait --server "$address" --timeout 60s

# Streams a continuation of $1 and says how fast it came.
ask() {
  bin/tandem generate --server "$address" --prompt "$1" --stop $'\n' --usage "${@:2}"
}

say "A story, sampled at temperature 0.7 (prompt \"Story:\")"
ask "Story:" --max-tokens 120 --temperature 0.7 --seed "${TANDEM_DEMO_SEED:-7}"

story=$(sed -n 1p tools/demo/question.txt)
question=$(sed -n 2p tools/demo/question.txt)
say "A question about a given story, greedy"
printf '%s\n%s\n' "$story" "$question"
ask "$story"$'\n'"$question"$'\nAnswer:' --max-tokens 16 --temperature 0

if $once; then
  say "Stopping the server"
  kill -TERM "$server"
  wait "$server"
  server=
  echo "done: no process and no shared memory is left"
  exit 0
fi
say "Serving on $address until Ctrl-C. In another terminal:"
echo "  bin/tandem generate --server $address --prompt 'Story:' --temperature 0.7"
wait "$server"
