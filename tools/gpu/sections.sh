# The sections of run-checks.sh: check_SECTION. Programs are found under their paths in the tree; $kind is the end of their names.

# Checks that run side by side where times don't matter: references are computed by the CPU.
AT_ONCE=$(($(nproc) < 8 ? 4 : $(nproc) * 3 / 4))
readonly AT_ONCE

check_device() {
  if [[ $kind == emulated ]]; then
    check device 60 echo "device 0: emulated"
    return
  fi
  shown=1 check device 60 kernels/cuda/device_info
  nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,temperature.gpu \
    --format=csv 2>&1 | tee "$results/nvidia-smi.log"
}

check_nccl() {
  shown=1 check nccl:probe 60 "tests/worker/comm/nccl_probe_$kind" --json "$results/figures/nccl.json"
  check nccl:ranks 120 "${SHARED_GPU[@]}" "tests/worker/comm/nccl_ranks_test_$kind"
}

# bench SECTION MOST-SECONDS
bench() { shown=1 check "$1" "$2" "tests/worker/step_bench/step_bench_$kind" "$1" "${TOY[@]}" --json "$results/figures/$1.json"; }
check_step() { bench step 180; }
check_replay() { bench replay 90; }
check_ablation() { bench ablation 90; }
check_sizes() { bench sizes 90; }

check_table() {
  shown=1 check table 150 "tests/kernels/cuda/table/op_table_$kind" "${TOY[@]}" --json "$results/figures/table.json"
}

# Lines of "program filter name": suites of GoogleTest, a program's one by one; of one that lists none the program alone, what it says in NAME.list.
suites() {
  local program list found
  for program in $(find tests/kernels \( -name "*_test_$kind" -o -name "contract_suites_$kind" \) ! -type d | sort); do
    list=$results/${program##*/}.list found=
    if LD_LIBRARY_PATH=$LIBRARIES "$program" --gtest_list_tests >"$list" 2>&1; then
      found=$(sed -n 's/^\([^ ]*\)\.\( .*\)*$/\1/p' "$list" | sort -u)
    fi
    while IFS= read -r suite; do echo "$program ${suite:+$suite.* ${suite##*/}}"; done <<<"$found"
  done
}

# each_suite PREFIX MOST-SECONDS MOST-AT-ONCE PATTERN [COMMAND...]: checks every suite whose name has the pattern, through the command.
each_suite() {
  local prefix=$1 most=$2 at_once=$3 pattern=$4 program filter name
  shift 4
  while read -r program filter name; do
    [[ -n $name ]] || { verdict FAIL "$prefix:${program##*/}" "lists no suites: $(why "$results/${program##*/}.list")"; continue; }
    [[ $name =~ $pattern ]] || continue
    at_most "$at_once"
    check "$prefix:$name" "$most" "$@" "$program" "--gtest_filter=$filter" </dev/null &
  done < <(suites)
  wait
}

check_contract() {
  local seed=$((RANDOM * 32768 + RANDOM + 1))
  echo "fresh inputs: TANDEM_TEST_SEED=$seed"
  echo "seed=$seed" >>"$results/run"
  each_suite contract 120 "$AT_ONCE" . env TANDEM_TEST_SEED="$seed"
}

readonly OF_RANKS='*CudaGoldenTest*_2:*CudaGoldenTest*_4'

# golden_models SHARDS MOST-SECONDS FILTER: those of the reference models that the filter names.
golden_models() {
  local shard
  for ((shard = 0; shard < $1; ++shard)); do
    at_most "$AT_ONCE"
    check "$section:part$shard" "$2" env GTEST_TOTAL_SHARDS="$1" GTEST_SHARD_INDEX="$shard" \
      "${SHARED_GPU[@]}" "tests/cluster/cuda_golden_test_$kind" "--gtest_filter=$3" &
  done
  wait
}

check_goldens() {
  [[ $kind == gpu ]] || { golden_models 1 200 'Models/CudaGoldenTest*/gpt2_1'; return; }
  golden_models 6 200 "-$OF_RANKS"
}

# Ranks that share a GPU take it in turns, and talk through the host: a model takes half a minute or more, so only one of each kind is run.
readonly OF_RANKS_THAT_SHARE='*/llama_2:*/gpt2_2:*/gemma3_2:*/qwen3moe_2:*/gpt_oss_2:*/deepseek2_v3_2'
check_ranks() {
  [[ $kind == gpu ]] || { golden_models 1 200 'Models/CudaGoldenTest*/gpt2_2'; return; }
  ((${#SHARED_GPU[@]} == 1)) && { golden_models 6 200 "$OF_RANKS"; return; }
  golden_models 6 200 "$OF_RANKS_THAT_SHARE"
}

check_demo() {
  local one=("${SHARED_GPU[@]}") toy=
  [[ $kind == emulated ]] && toy=1 || one=(env)
  check demo:tp1 90 "${one[@]}" TANDEM_TEST_TOY=$toy "$here/demo_tokens.sh" "$results/demo_tp1.json" 1
  check demo:tp2 120 "${SHARED_GPU[@]}" TANDEM_TEST_TOY=$toy "$here/demo_tokens.sh" "$results/demo_tp2.json" 2
  if [[ -s $results/demo_tp1.json ]] && cmp -s "$results/demo_tp1.json" "$results/demo_tp2.json"; then
    verdict PASS demo:same-tokens "TP 1 and TP 2, greedy, $(wc -l <"$results/demo_tp1.json") prompts"
  else
    verdict FAIL demo:same-tokens "compare demo_tp1.json and demo_tp2.json"
  fi
}

check_determinism() {
  local calm busy name
  each_suite calm 60 4 . env TANDEM_TEST_BITS=1
  each_suite busy 90 4 . env TANDEM_TEST_BITS=1 TANDEM_TEST_HOG=1
  for calm in "$results"/calm:*.log; do
    [[ -f $calm ]] || continue
    name=${calm##*/calm:} busy=$results/busy:${calm##*/calm:}
    if ! grep -q '^bits ' "$calm"; then
      verdict FAIL "same-bits:${name%.log}" "no test has told its bits"
    elif [[ -s $busy ]] && cmp -s <(grep '^bits ' "$calm") <(grep '^bits ' "$busy"); then
      verdict PASS "same-bits:${name%.log}" "$(grep -c '^bits ' "$calm") tests"
    else
      verdict FAIL "same-bits:${name%.log}" "$(diff <(grep '^bits ' "$calm") <(grep -s '^bits ' "$busy") | sed -n '2p')"
    fi
  done
}

check_sanitizer() {
  local tool pattern sanitizer
  sanitizer=$(PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer command -v compute-sanitizer) ||
    { verdict NOT-RUN sanitizer "compute-sanitizer is not installed"; return; }
  for tool in memcheck synccheck initcheck racecheck; do
    pattern=.
    # It is slow: only where threads of a block work on shared memory in ways of their own.
    [[ $tool == racecheck ]] && pattern='Attention|Route|Sample|LogProbs|Expert'
    each_suite "$tool" 200 "$AT_ONCE" "$pattern" env TANDEM_TEST_SMALL=1 "$sanitizer" --tool "$tool" --error-exitcode 86
  done
}
