# Fuzzing with libFuzzer, which only clang has, and atheris, which brings it to Python: tests/fuzz/README.md.
# Sourced by ./dev.

readonly FUZZ_CC_TARGETS=(gguf grammar requests step tokenizer worker_protocol)
readonly FUZZ_TARGETS=("${FUZZ_CC_TARGETS[@]}" chat_templates http_requests tool_calls)
readonly ATHERIS=atheris==3.0.0

# run_fuzzers [--seconds N] [--seed N] [TARGET...]: each target for N seconds (60), as many at a time as there are cores.
# With a seed and no corpora of earlier runs it tries the same inputs on each run, up to how far it comes. Corpora, logs and what was found stay in build/fuzz.
run_fuzzers() {
  local seconds=60 seed=0 target targets=() running=0 failed=()
  while (($#)); do
    case $1 in
      --seconds) seconds=${2:?a number of seconds}; shift ;;
      --seed) seed=${2:?a number}; shift ;;
      *)
        [[ " ${FUZZ_TARGETS[*]} " == *" $1 "* ]] ||
          { echo "./dev fuzz: no target '$1'; there are: ${FUZZ_TARGETS[*]}" >&2; return 2; }
        targets+=("$1") ;;
    esac
    shift
  done
  ((${#targets[@]})) || targets=("${FUZZ_TARGETS[@]}")
  build_fuzzers "${targets[@]}"
  mapfile -t targets < <(runnable_fuzzers "${targets[@]}")
  ((${#targets[@]})) || return 1
  for target in "${targets[@]}"; do
    ((running++ < $(nproc))) || wait -n || true
    fuzz_one "$target" "$seconds" "$seed" &
  done
  wait
  for target in "${targets[@]}"; do
    echo "fuzz: $target: $(fuzz_summary "build/fuzz/$target.log")"
    ended_well "$target" && continue
    failed+=("$target")
    show_failure "$target"
  done
  ((${#failed[@]} == 0)) || { echo "fuzz: failed: ${failed[*]}; their logs and inputs are build/fuzz/TARGET*" >&2; return 1; }
}

is_cc_target() { [[ " ${FUZZ_CC_TARGETS[*]} " == *" $1 "* ]]; }

# build_fuzzers TARGET...: what these targets need.
build_fuzzers() {
  local target labels=() python=0
  for target; do
    if is_cc_target "$target"; then labels+=("//tests/fuzz:fuzzer_$target"); else python=1; fi
  done
  ((python)) && labels+=(//gateway:tandem_gateway)
  bazel build --config=fuzz "${labels[@]}"
  ((python)) || return 0
  install_python_packages
  has_atheris || timeout 120 build/venv/bin/pip install --quiet --disable-pip-version-check --retries 1 "$ATHERIS" || true
  export TANDEM_VENV=$PWD/build/venv
}

# runnable_fuzzers TARGET...: those whose needs are there, a line each.
runnable_fuzzers() {
  local target
  for target; do
    if is_cc_target "$target" || has_atheris; then
      echo "$target"
    else
      echo "./dev fuzz: $target is skipped: $ATHERIS of PyPI could not be installed" >&2
    fi
  done
}

has_atheris() { compgen -G "build/venv/lib/python3*/site-packages/${ATHERIS/==/-}.dist-info" >/dev/null; }

# fuzz_one TARGET SECONDS SEED: from its seeds, tests/fuzz/corpus and what earlier runs kept. Its log ends with the exit status.
fuzz_one() {
  local corpus=build/fuzz/corpus/$1 log=build/fuzz/$1.log status=0
  local fuzzer=(/usr/bin/python3 tests/fuzz/gateway_fuzz.py "$1")
  is_cc_target "$1" && fuzzer=("bazel-bin/tests/fuzz/fuzzer_$1")
  mkdir -p "$corpus"
  rm -f build/fuzz/"$1"-*
  export PYTHONHASHSEED=0
  TANDEM_FUZZ_SEEDS=$corpus "${fuzzer[@]}" >"$log" 2>&1 || status=$?
  ((status)) || "${fuzzer[@]}" -max_total_time="$2" -seed="$3" -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$1-" "$corpus" $(compgen -G "tests/fuzz/corpus/$1") >>"$log" 2>&1 || status=$?
  echo "exit status $status" >>"$log"
}

ended_well() { [[ $(tail -n 1 "build/fuzz/$1.log") == "exit status 0" ]]; }

# show_failure TARGET: what went wrong, and the inputs, for where the files are out of reach.
show_failure() {
  local input
  awk '/ERROR: |runtime error: |Uncaught Python exception|Traceback|libFuzzer: /  { on = 1 }
       on && shown++ < 100 { print }
       { last = $0 }
       END { if (!on) print last }' "build/fuzz/$1.log"
  for input in $(compgen -G "build/fuzz/$1-*"); do
    echo "$input, at most 64 KiB of it, in Base64:"
    head -c 65536 "$input" | base64 -w 0
    echo
  done
}

# fuzz_summary LOG: executions, coverage and whether something was found, as libFuzzer tells.
fuzz_summary() {
  awk '/ cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") edges = $(i + 1) }
       /stat::number_of_executed_units/ { runs = $2 }
       /^SUMMARY: / { found = $0 }
       END { printf "%d executions, %d edges, %s\n", runs, edges, found == "" ? "nothing found" : found }' "$1"
}
