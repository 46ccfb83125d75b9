#!/usr/bin/env bash
# The program itself, where no server is needed: what it prints, its errors and exit codes.
set -u
readonly tandem=client/tandem
readonly model=tests/golden/arch/llama/model.gguf
readonly tmp=${TEST_TMPDIR:?}
failed=0

# expect NAME STATUS STDOUT-PATTERN STDERR-PATTERN COMMAND...: patterns are extended regular
# expressions over the whole output; an error is exactly one line.
expect() {
  local name=$1 want_status=$2 want_out=$3 want_err=$4 status
  shift 4
  "$@" >"$tmp/out" 2>"$tmp/err"
  status=$?
  if [[ $status != "$want_status" ]] || ! [[ $(<"$tmp/out") =~ $want_out ]] ||
    ! [[ $(<"$tmp/err") =~ $want_err ]] ||
    { [[ $want_status == 1 ]] && [[ $(wc -l <"$tmp/err") != 1 ]]; }; then
    echo "FAILED: $name: status $status (expected $want_status)"
    echo "--- stdout"; head -c 2000 "$tmp/out"; echo "--- stderr"; head -c 2000 "$tmp/err"
    failed=1
  fi
}

stdin() { local text=$1; shift; printf '%b' "$text" | "$@"; }

expect help 0 'Examples:.*tandem wait' '^$' $tandem --help
for command in generate info tokenize wait stats bench; do
  expect "$command help" 0 'Examples:' '^$' $tandem $command --help
done
expect version 0 '^tandem [0-9]+\.[0-9]+\.[0-9]+ \(.+\)$' '^$' $tandem --version
expect 'no command' 2 '^$' '^tandem: .*subcommand' $tandem
expect 'unknown flag' 2 '^$' '^tandem: .*--nonsense' $tandem stats --nonsense

expect info 0 'architecture +llama' '^$' $tandem info $model
expect 'info json' 0 '"architecture": "llama"' '^$' $tandem info --json $model
expect 'info memory' 0 'TP 1 +yes: .*; 1 GiB hold them and [0-9]+ tokens' '^$' $tandem info $model --memory 1GiB
expect 'info memory json' 0 '"tokens_that_fit": [0-9]+' '^$' $tandem info $model --memory 1000MB --json
expect 'info memory in short' 0 '"memory_bytes": 24000000000,' '^$' $tandem info $model --memory 24G --json
expect 'info cache type' 0 'BF16 KV cache .* per token' '^$' $tandem info $model --kv-cache-type bf16
expect 'info no cache type' 1 '^$' '^tandem: .*f32, f16, bf16, q8_0' $tandem info $model --kv-cache-type q4
expect 'info no memory' 2 '^$' '^tandem: .*--memory' $tandem info $model --memory lots
expect 'no file' 1 '^$' '^tandem: no/such.gguf: ' $tandem info no/such.gguf
for bad in empty magic-only trunc-data-half missing-tensor tokens-missing; do
  file=tests/golden/bad-gguf/$bad.gguf
  expect "$bad" 1 '^$' "^tandem: $file: .+" $tandem info $file
done

ids='^[0-9]+( [0-9]+)*$'
expect tokenize 0 "$ids" '^$' stdin 'hello world' $tandem tokenize --model $model
whole=$(stdin 'a\nb' $tandem tokenize --model $model --no-special)
expect 'tokenize lines' 0 $'^[0-9 ]+\n\n[0-9 ]+$' '^$' \
  stdin 'ab\n\ncd\n' $tandem tokenize --model $model --no-special --lines
[[ $whole =~ $ids ]] || { echo "FAILED: whole text: $whole"; failed=1; }
expect 'not UTF-8' 1 '' '^tandem: line 2: .*UTF-8' \
  stdin 'a\n\xff\n' $tandem tokenize --model $model --lines

expect 'no prompt' 2 '^$' '^tandem: ' $tandem generate
expect 'two prompts' 2 '^$' '^tandem: ' $tandem generate --prompt a --prompt-token-ids 1
expect 'no prompts file' 1 '^$' '^tandem: no/such: ' $tandem generate --prompts-file no/such
expect 'bad line' 1 '^$' "^tandem: stdin: line 2: unknown field 'x'" \
  stdin '{"prompt": "a"}\n{"prompt": "a", "x": 1}\n' $tandem generate --prompts-file -
expect 'bad server' 1 '^$' '^tandem: --server: ' $tandem generate --prompt a --server nowhere
# Nothing listens on port 1.
expect 'no server' 1 '"error":"127.0.0.1:1: ' '^tandem: 127.0.0.1:1: ' \
  $tandem generate --server 127.0.0.1:1 --prompt '' --json
expect 'stats without server' 1 '^$' '^tandem: 127.0.0.1:1: ' $tandem stats --server 127.0.0.1:1
expect 'wait in vain' 1 '^$' '^tandem: 127.0.0.1:1 does not serve after 200ms' \
  $tandem wait --server 127.0.0.1:1 --timeout 200ms
expect 'bad timeout' 1 '^$' "^tandem: 'soon' is no time" $tandem wait --timeout soon

expect 'bench nothing' 1 '^$' '^tandem: there is nothing to measure' \
  $tandem bench --model $model --prefill 0 --decode 0
expect 'bench too long' 1 '^$' '^tandem: --prefill needs a context of 100001 tokens' \
  $tandem bench --model $model --prefill 100000
expect 'bench on cuda' 1 '^$' '^tandem: --device cuda: there is no tandem_worker_cuda in ' \
  $tandem bench --model $model --prefill 4 --device cuda
expect 'bench through real workers' 0 '"prefill_tokens_per_second": [0-9.]+.*"4": [0-9.]+' '' \
  $tandem bench --model $model --worker-binary worker/tandem_worker --tensor-parallel-size 2 \
  --threads-per-worker 1 --prefill 20 --decode 4 --batch 1 4 --repetitions 1 --json
expect 'bench on three ranks of 8 heads' 1 '^$' '^tandem: .*3.* 8 ' \
  $tandem bench --model $model --worker-binary worker/tandem_worker --tensor-parallel-size 3

exit $failed
