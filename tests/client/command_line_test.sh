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
    { [[ $want_status != 0 ]] && [[ $(wc -l <"$tmp/err") != 1 ]]; }; then
    echo "FAILED: $name: status $status (expected $want_status)"
    echo "--- stdout"; head -c 2000 "$tmp/out"; echo "--- stderr"; head -c 2000 "$tmp/err"
    failed=1
  fi
}

stdin() { local text=$1; shift; printf '%b' "$text" | "$@"; }

expect help 0 'Examples:.*tandem wait' '^$' $tandem --help
for command in generate info pull tokenize detokenize wait stats bench; do
  expect "$command help" 0 'Examples:' '^$' $tandem $command --help
done
expect 'chat in the list' 0 'chat +a conversation' '^$' $tandem --help
expect 'chat after flags' 1 '^$' 'tandem: .*`chat` comes first' $tandem --config /dev/null chat
expect version 0 '^tandem [0-9]+\.[0-9]+\.[0-9]+ \(.+\)$' '^$' $tandem --version
expect 'no command' 2 '^$' '^tandem: .*subcommand' $tandem
expect 'unknown flag' 2 '^$' "^tandem: unknown flag '--nonsense' \(see tandem stats --help\)" $tandem stats --nonsense
expect 'unknown flag first' 2 '^$' "unknown flag '--bogus' \(see tandem generate --help\)" $tandem generate --bogus
expect 'unknown command' 2 '^$' "^tandem: unknown command 'bogus' \(see tandem --help\)" $tandem bogus
expect 'help of no command' 2 '^$' "^tandem: unknown command 'bogus'" $tandem bogus --help
expect 'no value' 2 '^$' '^tandem: --server needs a value' $tandem stats --server

# What cannot be written is an error.
full() { "$@" >/dev/full; }
closed() { "$@" >&-; }
for arguments in --help --version 'tokenize --help' "info $model" "info --json $model" \
  "detokenize -m $model 5 6"; do
  # shellcheck disable=SC2086
  expect "$arguments to a full device" 1 '^$' '^tandem: stdout: No space left on device' full $tandem $arguments
done
expect 'tokenize to a full device' 1 '^$' '^tandem: stdout: No space' stdin 'hello' full $tandem tokenize -m $model
expect 'info to a closed output' 1 '^$' '^tandem: stdout: ' closed $tandem info $model

expect info 0 'architecture +llama' '^$' $tandem info $model
expect 'info json' 0 '"architecture": "llama"' '^$' $tandem info --json $model
expect 'info memory' 0 'TP 1 +yes: .*; 1 GiB hold them and [0-9]+ tokens' '^$' $tandem info $model --memory 1GiB
expect 'info memory json' 0 '"tokens_that_fit": [0-9]+' '^$' $tandem info $model --memory 1000MB --json
expect 'info memory in short' 0 '"memory_bytes": 24000000000,' '^$' $tandem info $model --memory 24G --json
expect 'info cache type' 0 'BF16 KV cache .* per token' '^$' $tandem info $model --kv-cache-type bf16
expect 'info no cache type' 2 '^$' '^tandem: .*f32, f16, bf16, q8_0' $tandem info $model --kv-cache-type q4
expect 'info no memory' 2 '^$' '^tandem: .*--memory' $tandem info $model --memory lots
expect 'info of all ranks' 0 'TP 3 +yes: .*TP 4 +no: .*TP 6 +yes: ' '^$' $tandem info tests/golden/arch/qwen2/model.gguf
expect 'no file' 1 '^$' '^tandem: no/such.gguf: ' $tandem info no/such.gguf
for bad in missing-tensor tokens-missing eos-out-of-range token-type-short; do
  file=tests/golden/bad-gguf/$bad.gguf
  expect "$bad" 1 '^$' "^tandem: $file: cannot be served: .+" $tandem info $file
done
for bad in empty magic-only trunc-data-half; do
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

expect 'tokenize pieces' 0 $'^[0-9]+\t".*"\n[0-9]+\t"' '^$' \
  stdin 'hello world' $tandem tokenize --model $model --pieces
expect 'detokenize undoes it' 0 '^hello  w\\n' '^$' \
  bash -c "printf 'hello  w\\\\n' | $tandem tokenize -m $model | $tandem detokenize -m $model"
expect 'detokenize lines' 0 '^ab
cd$' '^$' bash -c "printf 'ab\ncd\n' | $tandem tokenize -m $model --lines | $tandem detokenize -m $model --lines"
expect 'detokenize no number' 1 '^$' "^tandem: stdin: 'x' is not a token id" stdin '5 x' $tandem detokenize -m $model
expect 'detokenize no such id' 1 '^$' '^tandem: token id 999999 is outside' $tandem detokenize -m $model 999999

expect 'no prompt' 2 '^$' '^tandem: ' $tandem generate
expect 'two prompts' 2 '^$' '^tandem: ' $tandem generate --prompt a --prompt-token-ids 1
expect 'empty ids' 2 '^$' "^tandem: --prompt-token-ids is '', it must be " $tandem generate --prompt-token-ids ''
for flag in --top-p --temperature --max-tokens --logprobs --seed --stop-token-id --timeout; do
  expect "empty $flag" 2 '^$' "^tandem: $flag is '', it must be " $tandem generate --prompt x $flag ''
done
expect 'seed -1' 2 '^$' "^tandem: --seed is '-1', it must be a whole number of at least 0" $tandem generate --prompt x --seed -1
expect 'top-p 2' 2 '^$' '^tandem: top_p is 2, it must be ' $tandem generate --prompt x --top-p 2
expect 'max-tokens 0' 2 '^$' '^tandem: --max-tokens is 0, it must be from 1' $tandem generate --prompt x --max-tokens 0
expect 'long nonsense' 2 '^$' "^tandem: --seed is '9{60}\.\.\.', " $tandem generate --prompt x --seed "$(printf '9%.0s' {1..309})"
expect 'prompt not UTF-8' 2 '^$' '^tandem: --prompt is not valid UTF-8 at byte 1 of 2' $tandem generate --prompt $'a\xff'
expect 'stop not UTF-8' 2 '^$' '^tandem: --stop is not valid UTF-8 at byte 0 of 1' $tandem generate --prompt a --stop $'\xff'
expect 'stdin not UTF-8' 1 '^$' '^tandem: stdin is not valid UTF-8 at byte 2 of 3' stdin 'ab\xff' $tandem generate --prompt -
expect 'prompt line not UTF-8' 1 '^$' '^tandem: stdin: line 1 is not valid UTF-8' \
  stdin '{"prompt": "\xff"}\n' $tandem generate --prompts-file -
expect 'no prompt file' 1 '^$' '^tandem: no/such: cannot be read' $tandem generate --prompt-file no/such
expect 'no prompts file' 1 '^$' '^tandem: no/such: ' $tandem generate --prompts-file no/such
expect 'bad line' 1 '^$' "^tandem: stdin: line 2: unknown field 'x'" \
  stdin '{"prompt": "a"}\n{"prompt": "a", "x": 1}\n' $tandem generate --prompts-file -
expect 'bad server' 2 '^$' '^tandem: --server: ' $tandem generate --prompt a --server nowhere
# Nothing listens on port 1.
expect 'no server' 1 '"error":"127.0.0.1:1: ' '^tandem: 127.0.0.1:1: ' \
  $tandem generate --server 127.0.0.1:1 --prompt '' --json
expect 'stats without server' 1 '^$' '^tandem: 127.0.0.1:1: ' $tandem stats --server 127.0.0.1:1
expect 'reset-cache without server' 1 '^$' '^tandem: 127.0.0.1:1: ' $tandem reset-cache --server 127.0.0.1:1
expect 'trace without server' 1 '^$' '^tandem: 127.0.0.1:1: ' $tandem trace --server 127.0.0.1:1 --output -
expect 'wait in vain' 1 '^$' '^tandem: 127.0.0.1:1 does not serve after 200ms' \
  $tandem wait --server 127.0.0.1:1 --timeout 200ms
for bad in soon 0 -1s inf nan 1e300 9999999h; do
  expect "timeout $bad" 2 '^$' '^tandem: --timeout is .*, it must be ' $tandem wait --timeout $bad
done

# Flags from the environment and from a file.
printf 'server = "127.0.0.1:3"\n[wait]\ntimeout = "200ms"\n' >"$tmp/flags.toml"
expect 'a file of flags' 1 '^$' '^tandem: 127.0.0.1:3 does not serve after 200ms' $tandem wait --config "$tmp/flags.toml"
expect 'the environment wins' 1 '^$' '^tandem: 127.0.0.1:2 does not' env TANDEM_SERVER=127.0.0.1:2 $tandem wait --config "$tmp/flags.toml"
expect 'the flag wins' 1 '^$' '^tandem: 127.0.0.1:1 does not' \
  env TANDEM_SERVER=127.0.0.1:2 $tandem wait --server 127.0.0.1:4 --server 127.0.0.1:1 --config "$tmp/flags.toml"
expect 'bad environment' 2 '^$' "^tandem: TANDEM_TIMEOUT: --timeout is 'x'" env TANDEM_TIMEOUT=x $tandem wait
expect 'no such config' 2 '^$' '^tandem: --config no/such: cannot be read' $tandem wait --config no/such
for program in coordinator/tandem_coordinator worker/tandem_worker; do
  name=${program#*/}
  expect "$name version" 0 "^$name [0-9.]+ \\(" '^$' $program --version
  expect "$name bogus" 2 '^$' "^$name: unknown flag '--bogus' \\(see $name --help\\)" $program --bogus
done
expect 'coordinator range' 2 '^$' 'block-size is 0, it must be from 1' coordinator/tandem_coordinator -m x --block-size 0
expect 'coordinator empty' 2 '^$' "max-num-seqs is ''" coordinator/tandem_coordinator -m x --max-num-seqs ''
expect 'coordinator combination' 2 '^$' 'workers external needs' coordinator/tandem_coordinator -m x --workers external
expect 'coordinator environment' 2 '^$' 'TANDEM_BLOCK_SIZE: --block-size is 0' env TANDEM_BLOCK_SIZE=0 coordinator/tandem_coordinator -m x
# Its last line: before it, that it loads the model.
last_line() { "$@" 2>&1 >"$tmp/stdout" | tail -n 1 >&2; return "${PIPESTATUS[0]}"; }
expect 'coordinator no vocabulary' 1 '^$' 'token-type-short.gguf: vocabulary: ' last_line \
  coordinator/tandem_coordinator -m tests/golden/bad-gguf/token-type-short.gguf --listen 127.0.0.1:0
expect 'worker rank' 2 '^$' "rank must be a number from 0 or auto, got 'x'" worker/tandem_worker --coordinator h:1 --token-file x --rank x
expect 'worker coordinator' 2 '^$' '--coordinator: ' worker/tandem_worker --coordinator foo --token-file x
expect 'worker empty' 2 '^$' "device-index is ''" worker/tandem_worker --coordinator h:1 --token-file x --device-index ''

expect 'bench nothing' 2 '^$' '^tandem: there is nothing to measure' \
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
