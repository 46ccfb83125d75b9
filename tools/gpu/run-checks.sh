#!/usr/bin/env bash
# Checks of the CUDA backend on a machine with an NVIDIA GPU, from the folder that `./dev gpu-bundle` makes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

readonly SECTIONS=(device contract goldens nccl demo table sanitizer)
usage() {
  cat <<END
usage: run-checks.sh [--limit SECONDS] [--results FOLDER] [SECTION...]

  device     GPU, driver, clocks
  contract   every op against plain formulas, on the GPU; twice, the second time with fresh random inputs
  goldens    reference models through worker processes with --device cuda, on 1 rank and on 2
  nccl       two ranks of the NCCL communicator
  demo       server and client with --device cuda, on 1 rank and on 2: greedy tokens must be the same
  table      times of ops beside what this GPU's copy bandwidth and matrix rate allow
  sanitizer  compute-sanitizer's memcheck and racecheck on the contract suites, small cases

All sections if none is named, in this order; what the limit (570 s) leaves no time for counts as not run. Where ranks outnumber GPUs they share
GPU 0. Logs go to FOLDER (results). Exit code 0: everything ran and passed.
END
}

limit=570
results=results
while (($#)); do
  case $1 in
    --limit) limit=$2; shift 2 ;;
    --results) results=$2; shift 2 ;;
    -h | --help) usage; exit 0 ;;
    *) break ;;
  esac
done
for section; do
  [[ " ${SECTIONS[*]} " == *" $section "* ]] || { echo "run-checks: no section '$section'; there are: ${SECTIONS[*]}" >&2; exit 2; }
done
(($#)) || set -- "${SECTIONS[@]}"

# --- libraries ---

# Folders of NVIDIA's libraries: the toolkit, and Python's wheels.
nvidia_folders() {
  printf '%s\n' /usr/local/cuda/lib64 /usr/local/cuda/lib
  python3 - 2>/dev/null <<'END'
import glob, site, sys
for base in dict.fromkeys(sys.path + site.getsitepackages() + [site.getusersitepackages()]):
    print("\n".join(sorted(glob.glob(f"{base}/nvidia/*/lib"))))
END
}

find_libraries() {
  local folder missing given=${LD_LIBRARY_PATH:-}
  LD_LIBRARY_PATH=$PWD/lib${given:+:$given}
  while IFS= read -r folder; do
    [[ -n $folder && -d $folder ]] && LD_LIBRARY_PATH+=:$folder
  done < <(nvidia_folders)
  missing=$(LD_LIBRARY_PATH=$LD_LIBRARY_PATH ldd worker/tandem_worker_cuda client/tandem 2>&1 |
    sed -n 's/^[[:space:]]*\(.*\) => not found/\1/p; s/.*\(version .* not found\).*/\1/p' | sort -u | paste -sd ' ')
  [[ -z $missing ]] && return
  echo "run-checks: not found: $missing (looked in LD_LIBRARY_PATH, /usr/local/cuda/lib64 and Python's nvidia/*/lib)" >&2
  exit 1
}

# --- verdicts ---

left() { echo $((limit - SECONDS)); }

# verdict PASS|FAIL|NOT-RUN NAME DETAIL
verdict() {
  printf '%-7s %-44s %s\n' "$1" "$2" "$3" | tee -a "$results/verdicts"
}

# check NAME MOST-SECONDS COMMAND...: runs it, output in NAME.log; if GoogleTest skips for lack of a
# GPU, it is not a pass.
check() {
  local name=$1 most=$2 log=$results/$1.log begin=$SECONDS status=0 passed skipped detail
  shift 2
  (($(left) < most)) && most=$(left)
  ((most > 3)) || { verdict NOT-RUN "$name" "no time left"; return; }
  (LD_LIBRARY_PATH=$LIBRARIES timeout -k 5 "$most" "$@") >"$log" 2>&1 || status=$?
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log")
  skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$log")
  detail="$((SECONDS - begin)) s${passed:+, $passed passed}${skipped:+, $skipped skipped}"
  if ((status == 124 || status == 137)); then
    verdict FAIL "$name" "stopped after $most s"
  elif ((status != 0)) || grep -q '^\[  FAILED  \]' "$log"; then
    verdict FAIL "$name" "$detail; exit code $status: $(why "$log")"
  elif [[ $passed == 0 ]] || grep -qE '^no GPU|need as many GPUs' "$log"; then
    verdict FAIL "$name" "$detail; $(grep -A1 -m1 'Skipped$' "$log" | tail -1)"
  else
    verdict PASS "$name" "$detail"
  fi
}

# The most informative line of a log.
why() {
  { grep -m1 -E 'ERROR SUMMARY: [1-9]|error:|Error:|: Failure|terminate' "$1" || tail -1 "$1"; } | cut -c1-160
}

# at_most N: waits until fewer than N checks run in the background.
at_most() { while (($(jobs -rp | wc -l) >= $1)); do wait -n; done; }

# Lines of "program filter name": suites of GoogleTest, a program's one by one.
suites() {
  local program
  for program in $(find tests/kernels -name '*_gpu' -type f | sort); do
    LD_LIBRARY_PATH=$LIBRARIES "$program" --gtest_list_tests |
      sed -n 's/^\([^ ]*\)\.\( .*\)*$/\1/p' | sort -u |
      while IFS= read -r suite; do echo "$program $suite.* ${suite##*/}"; done
  done
}

# each_suite PREFIX MOST-SECONDS MOST-AT-ONCE [COMMAND...]: checks every suite, through the command.
each_suite() {
  local prefix=$1 most=$2 at_once=$3 program filter name
  shift 3
  while read -r program filter name; do
    at_most "$at_once"
    check "$prefix:$name" "$most" "$@" "$program" "--gtest_filter=$filter" </dev/null &
  done < <(suites)
  wait
}

# --- sections ---

check_device() {
  check device 60 kernels/cuda/device_info
  cat "$results/device.log"
  nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,temperature.gpu \
    --format=csv 2>&1 | tee "$results/nvidia-smi.log"
}

check_contract() {
  local seed=$((RANDOM * 32768 + RANDOM + 1))
  each_suite contract 120 4
  echo "fresh inputs: TANDEM_TEST_SEED=$seed"
  each_suite contract-fresh 120 4 env TANDEM_TEST_SEED="$seed"
}

check_goldens() {
  local shard filter='*CudaGoldenTest*_2' ranks
  for ranks in 1 2; do
    for shard in 0 1 2 3; do
      at_most 4
      # On 1 rank: all that is not on 2.
      check "goldens:tp$ranks:part$shard" 200 env GTEST_TOTAL_SHARDS=4 GTEST_SHARD_INDEX="$shard" \
        "${SHARED_GPU[@]}" tests/cluster/cuda_golden_test_gpu "--gtest_filter=$([[ $ranks == 2 ]] || echo -)$filter" &
    done
  done
  wait
}

check_nccl() {
  local program found=0
  for program in $(find tests/worker -name '*nccl*_gpu' -type f | sort); do
    found=1
    check "nccl:${program##*/}" 120 "${SHARED_GPU[@]}" "$program"
  done
  ((found)) || verdict FAIL nccl "the bundle has no test of it"
}

check_demo() {
  check demo:tp1 90 ./demo_tokens.sh "$results/demo_tp1.json" 1
  check demo:tp2 120 "${SHARED_GPU[@]}" ./demo_tokens.sh "$results/demo_tp2.json" 2
  if [[ -s $results/demo_tp1.json ]] && cmp -s "$results/demo_tp1.json" "$results/demo_tp2.json"; then
    verdict PASS demo:same-tokens "TP 1 and TP 2, greedy, $(wc -l <"$results/demo_tp1.json") prompts"
  else
    verdict FAIL demo:same-tokens "compare demo_tp1.json and demo_tp2.json"
  fi
}

check_table() {
  check table 150 tests/kernels/cuda/table/op_table
  cat "$results/table.log"
}

check_sanitizer() {
  local tool sanitizer
  sanitizer=$(PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer command -v compute-sanitizer) ||
    { verdict NOT-RUN sanitizer "compute-sanitizer is not installed"; return; }
  for tool in memcheck racecheck; do
    each_suite "$tool" 200 6 env TANDEM_TEST_SMALL=1 "$sanitizer" --tool "$tool" --error-exitcode 86
  done
}

# --- ---

LIBRARIES=
find_libraries
LIBRARIES=$LD_LIBRARY_PATH
unset LD_LIBRARY_PATH
if ! gpus=$(LD_LIBRARY_PATH=$LIBRARIES kernels/cuda/device_info 2>&1); then
  echo "run-checks: ${gpus#device_info: }" >&2
  exit 1
fi
results=$(mkdir -p "$results" && cd "$results" && pwd) || exit 1
rm -f "$results"/*.log "$results"/demo_*.json "$results"/verdicts
: >"$results/verdicts"
SHARED_GPU=(env)
(($(grep -c '^device ' <<<"$gpus") > 1)) || SHARED_GPU=(env "TANDEM_TEST_CUDA_WORKER=$PWD/shared_gpu_worker.sh")

for section; do
  echo "== $section"
  "check_$section"
done
echo "== summary: $(grep -c '^PASS' "$results/verdicts") passed, $(grep -c '^FAIL' "$results/verdicts") failed, $(grep -c '^NOT-RUN' "$results/verdicts") not run, $SECONDS s"
grep -v '^PASS' "$results/verdicts" && exit 1
exit 0
