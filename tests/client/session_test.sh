#!/usr/bin/env bash
# `tandem` against a real server of two worker processes: wait, generate, stats, and the end.
set -u
readonly tandem=client/tandem
readonly tmp=${TEST_TMPDIR:?}
failed=0

fail() { echo "FAILED: $*"; failed=1; }

# check NAME PATTERN TEXT: an extended regular expression.
check() { [[ $3 =~ $2 ]] || fail "$1: expected $2, found: ${3:0:1000}"; }

mkfifo "$tmp/stdout"
coordinator/tandem_coordinator --model tests/golden/arch/llama/model.gguf --listen 127.0.0.1:0 \
  --worker-binary worker/tandem_worker --tensor-parallel-size 2 --threads-per-worker 1 \
  --max-num-seqs 2 --max-queued-requests 2 >"$tmp/stdout" 2>"$tmp/stderr" &
coordinator=$!
trap 'kill $coordinator 2>/dev/null' EXIT
exec 3<"$tmp/stdout"
read -r -t 120 ready <&3 || fail "no ready line: $(<"$tmp/stderr")"
[[ $ready =~ listening\ on\ ([0-9.:]+) ]] || fail "no address in: $ready"
readonly server=${BASH_REMATCH[1]}

generate() { $tandem generate --server "$server" "$@"; }

# retried COMMAND: until it succeeds, for a minute.
retried() {
  local left=600
  until "$@" 2>"$tmp/err"; do
    ((--left > 0)) || { fail "$*: $(<"$tmp/err")"; return 1; }
    sleep 0.1
  done
}

$tandem wait --server "$server" --timeout 60s || fail "wait"
before=$($tandem stats --server "$server" --json)
check stats '"tandem_kv_blocks":[1-9][0-9]*,.*"tandem_num_requests_running":0,"tandem_num_requests_waiting":0,' "$before"

first=$(generate --prompt 'hello world' --max-tokens 12 --seed 7 --ignore-eos --json)
again=$(generate --prompt 'hello world' --max-tokens 12 --seed 7 --ignore-eos --json)
check answer '"finish_reason":"length","usage":\{"prompt_tokens":7,"completion_tokens":12,' "$first"
[[ $first == "$again" ]] || fail "the same seed gave $first, then $again"

# More prompts than the server lets run and wait: refused ones are retried.
for i in {1..20}; do
  echo "{\"prompt_token_ids\": [$i, 2, 3], \"max_tokens\": $i}"
done >"$tmp/prompts"
generate --prompts-file "$tmp/prompts" --ignore-eos --temperature 0 --json >"$tmp/answers" ||
  fail "many prompts"
i=0
while read -r answer; do
  i=$((i + 1))
  check "answer $i" "\"completion_tokens\":$i," "$answer"
done <"$tmp/answers"
[[ $i == 20 ]] || fail "$i answers to 20 prompts"

# What is generated greedily is greedy when it is scored, and its scores are its log-probabilities.
generated=$(generate --prompt 'hello world' --max-tokens 1 --temperature 0 --ignore-eos --logprobs 0 --json)
[[ $generated =~ \"text\":\"([^\"]*)\" ]]
scores=$($tandem score --server "$server" --prompt 'hello world' --continuation "${BASH_REMATCH[1]}" \
  --continuation ' and other words' --json)
[[ $generated =~ \"logprobs\":\[\{\"token_id\":([0-9]+),\"logprob\":(-[0-9.]+) ]] || fail "no log-probability in $generated"
check score "^\{\"logprob\":${BASH_REMATCH[2]},\"is_greedy\":true,\"tokens\":\[\{\"token_id\":${BASH_REMATCH[1]},[^]]*\],\"usage\":\{\"prompt_tokens\":8,[^}]*\}\}
\{\"logprob\":-[0-9.]+,\"is_greedy\":false," "$scores"
check 'score as text' '^ *-[0-9]+\.[0-9]{4}         and other words$' \
  "$($tandem score --server "$server" --prompt 'hello world' --continuation ' and other words')"
$tandem score --server "$server" --prompt 'hello world' --continuation '' 2>"$tmp/err" && fail "an empty continuation was scored"
check 'empty continuation' '^tandem: continuations\[0\]: it has no tokens$' "$(<"$tmp/err")"

# A vector per input, of length 1.
vectors=$($tandem embed --server "$server" --input 'hello world' --input x --input 'hello world' --dimensions 4 --pooling mean)
number='-?[0-9.e-]+'
check embed "^(\{\"embedding\":\[$number,$number,$number,$number\],\"usage\":\{\"prompt_tokens\":7,\"cached_tokens\":0\}\})
\{[^
]*\}
(.*)$" "$vectors"
[[ ${BASH_REMATCH[1]} == "${BASH_REMATCH[2]}" ]] || fail "the same text gave different vectors: $vectors"
$tandem embed --server "$server" --input x --pooling rank 2>"$tmp/err" && fail "an unknown pooling was taken"
check 'unknown pooling' "--pooling must be mean, cls or last, is 'rank'" "$(<"$tmp/err")"

# A batch that cannot be written is an error that names the answers.
generate --prompts-file "$tmp/prompts" --ignore-eos --json >/dev/full 2>"$tmp/err" && fail "a full device was taken"
check 'full device' '^tandem: stdout: No space left on device: answers 1 to 20 of 20 are not written$' "$(<"$tmp/err")"
$tandem stats --server "$server" >/dev/full 2>"$tmp/err" && fail "stats to a full device"
check 'stats to a full device' '^tandem: stdout: No space left on device$' "$(<"$tmp/err")"
mkfifo "$tmp/broken"
exec 4<>"$tmp/broken" 5>"$tmp/broken" 4<&-
generate --prompts-file "$tmp/prompts" --ignore-eos --json >&5 2>"$tmp/err" && fail "a broken pipe was taken"
check 'broken pipe' '^tandem: stdout: Broken pipe: answers 1 to 20 of 20 are not written$' "$(<"$tmp/err")"
exec 5>&-

# A prompt from stdin, from a file, as an argument: the same answer; a stop token ends it.
# Refused as long as requests of the batch before are in the server.
greedy=$(retried generate --prompt 'hello world' --max-tokens 12 --temperature 0 --ignore-eos --json)
printf 'hello world' >"$tmp/prompt"
for source in "--prompt -" "--prompt-file $tmp/prompt"; do
  # shellcheck disable=SC2086
  other=$(generate $source --max-tokens 12 --temperature 0 --ignore-eos --json <"$tmp/prompt")
  [[ $other == "$greedy" ]] || fail "$source gave $other, not $greedy"
done
[[ $greedy =~ \"token_ids\":\[([0-9]+), ]] || [[ $greedy =~ \"token_ids\":\[([0-9]+) ]] || fail "no ids in $greedy"
stopped=$(generate --prompt 'hello world' --max-tokens 12 --temperature 0 --ignore-eos --json \
  --stop-token-id "${BASH_REMATCH[1]}")
check 'stop token' '"finish_reason":"stop","matched_stop":'"${BASH_REMATCH[1]}"',"usage":\{"prompt_tokens":7,"completion_tokens":1,' "$stopped"

# Two blocks of a prompt are shared until the cache is reset.
cached() {
  local prompt='the quick brown fox jumps over the lazy dog, and then it sleeps all day long.'
  [[ $(generate --prompt "$prompt" --max-tokens 1 --json) =~ \"cached_tokens\":([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}
cached >/dev/null
(($(cached) >= 16)) || fail "a prompt sent again has $(cached) cached tokens"
$tandem reset-cache --server "$server" || fail "reset-cache"
[[ $(cached) == 0 ]] || fail "there are cached tokens after reset-cache"

generate --prompt '' 2>"$tmp/err" && fail "an empty prompt was taken"
check 'empty prompt' '^tandem: the prompt is empty$' "$(<"$tmp/err")"
generate --prompt x --max-tokens 999999 2>"$tmp/err" && fail "huge max_tokens were taken"
check 'huge max_tokens' '^tandem: .*999999.*2048' "$(<"$tmp/err")"

# An answer that is still running when the server stops is finished.
generate --prompt x --max-tokens 2000 --ignore-eos >"$tmp/text" 3<&- &
client=$!
until [[ -s $tmp/text ]] || ! kill -0 $client 2>/dev/null; do :; done
kill -TERM $coordinator
wait $coordinator || fail "the coordinator's exit: $?"
wait $client || fail "the client's exit: $?"
[[ -s $tmp/text ]] || fail "no text before the end"

exit $failed
