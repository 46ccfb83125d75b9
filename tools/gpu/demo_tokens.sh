#!/usr/bin/env bash
# Serves the demo model with --device cuda and writes greedy answers to a few prompts, one JSON array of token ids per line.
#   demo_tokens.sh OUT RANKS    (from the root of the bundle; TANDEM_TEST_CUDA_WORKER names another worker program;
#    TANDEM_TEST_TOY, if not empty: one short prompt and few tokens)
set -euo pipefail
out=$1
ranks=$2
log=$(mktemp)
server=
cleanup() {
  [[ -z $server ]] || { kill -TERM "$server" 2>/dev/null && wait "$server" || true; }
  rm -f "$log"
}
trap cleanup EXIT

# Few KV blocks, in F32: ranks may share a GPU, and tokens of 1 and 2 ranks are to be the same.
coordinator/tandem_coordinator --model models/demo.gguf --device "${TANDEM_TEST_DEVICE:-cuda}" --tensor-parallel-size "$ranks" \
  --worker-binary "${TANDEM_TEST_CUDA_WORKER:-worker/tandem_worker_cuda}" --kv-cache-type f32 --num-kv-blocks 512 --max-model-len 512 --max-num-seqs 4 \
  --listen 127.0.0.1:0 >"$log" 2>&1 &
server=$!
while ! grep -q '^ready: ' "$log"; do
  kill -0 "$server" 2>/dev/null || { cat "$log" >&2; exit 1; }
  sleep 0.1
done
cat "$log"
address=$(sed -n 's/^ready: listening on \([^,]*\),.*/\1/p' "$log")
# Prompts like the training texts, each to the end of its line: longer texts reach near ties.
story='Story: One cloudy day, Victor had a pink bell. Victor was walking about in the orchard. Wendy rested on the mountain. '
story+='Then Victor gave the bell to Wendy. Wendy left the pink bell under the stairs.'
prompts=("$story\\nQuestion: Who got the bell from Victor?\\nAnswer:" "$story\\nQuestion: What color was the bell?\\nAnswer:" \
  "$story\\nQuestion: Where did Wendy leave the bell?\\nAnswer:" "$story\\nQuestion: Where did Wendy rest?\\nAnswer:")
max_tokens=24
[[ -z ${TANDEM_TEST_TOY:-} ]] || prompts=("Story:") max_tokens=2
printf '{"prompt": "%s"}\n' "${prompts[@]}" |
  client/tandem generate --server "$address" --prompts-file - --temperature 0 --max-tokens "$max_tokens" --stop $'\n' --json |
  python3 -c 'import json, sys
for line in sys.stdin: print(json.dumps(json.loads(line)["token_ids"]))' >"$out.partial"
mv "$out.partial" "$out"
cat "$out"
kill -TERM "$server"
wait "$server"
server=
