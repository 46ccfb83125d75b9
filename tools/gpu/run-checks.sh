#!/usr/bin/env bash
# Checks of the CUDA backend on a machine with an NVIDIA GPU, from the folder that `./dev gpu-bundle` makes.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1
source "$here/verdicts.sh"
source "$here/sections.sh"

readonly SECTIONS=(device nccl step replay table ablation sizes contract goldens demo determinism ranks sanitizer)
usage() {
  cat <<END
usage: run-checks.sh [--limit SECONDS] [--results FOLDER] [--rehearse] [--programs FOLDER] [SECTION...]

  device       GPU, driver, clocks
  nccl         what NCCL's calls return and how long they take; two ranks of the communicator: graphs, a lost peer
  step         times of whole steps in the shapes of three models, beside what this GPU's memory and matrix units allow
  replay       random steps that begin with NaNs in activations and scratch: the same bits
  table        times of ops beside what this GPU's bandwidth and matrix rate allow
  ablation     step times with one op left out
  sizes        weights above 4 GiB, a large KV pool, a context of 131072, many graphs
  contract     every op against plain formulas, with fresh random inputs
  goldens      reference models through a worker process with --device cuda
  demo         server and client with --device cuda, on 1 rank and on 2: greedy tokens must be the same
  determinism  every suite of contract twice, the second time beside a stream that keeps multiprocessors busy: the same bits
  ranks        reference models on 2 ranks and on 4; if they share a GPU, six models on 2
  sanitizer    compute-sanitizer on the suites of contract, small cases: memcheck, synccheck, initcheck, and racecheck on some

All sections if none is named, in this order; what the limit (570 s) leaves no time for counts as not run. Where ranks outnumber GPUs they share
GPU 0. Logs go to FOLDER (results, beside this script), results.json has everything in one object. Exit code 0: everything ran and passed.
--rehearse: the same with emulated programs and toy sizes, on a machine without a GPU; programs are in FOLDER (that of this script).
END
}

limit=570
results=$here/results
programs=$here
kind=gpu
TOY=()
command_line="${0##*/} $*"
while (($#)); do
  case $1 in
    --limit) limit=$2; shift 2 ;;
    --results) results=$2; shift 2 ;;
    --programs) programs=$2; shift 2 ;;
    --rehearse) kind=emulated TOY=(--toy); shift ;;
    -h | --help) usage; exit 0 ;;
    *) break ;;
  esac
done
for section; do
  [[ " ${SECTIONS[*]} " == *" $section "* ]] || { echo "run-checks: no section '$section'; there are: ${SECTIONS[*]}" >&2; exit 2; }
done
(($#)) || set -- "${SECTIONS[@]}"
mkdir -p "$results" && results=$(cd "$results" && pwd) && cd "$programs" || exit 1

# --- libraries and GPUs ---

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

# SHARED_GPU: what programs of several ranks run under.
find_gpus() {
  local gpus
  if ! gpus=$(LD_LIBRARY_PATH=$LIBRARIES kernels/cuda/device_info 2>&1); then
    echo "run-checks: ${gpus#device_info: }" >&2
    exit 1
  fi
  SHARED_GPU=(env)
  (($(grep -c '^device ' <<<"$gpus") > 1)) || SHARED_GPU=(env "TANDEM_TEST_CUDA_WORKER=$here/shared_gpu_worker.sh")
}

LIBRARIES=${LD_LIBRARY_PATH:-}
if [[ $kind == gpu ]]; then
  find_libraries
  LIBRARIES=$LD_LIBRARY_PATH
  unset LD_LIBRARY_PATH
  find_gpus
else
  SHARED_GPU=(env TANDEM_TEST_CUDA_WORKER=tests/cluster/tandem_worker_emulated)
fi

# --- ---

begin_results "$command_line" "$@"
for section; do
  echo "== $section"
  "check_$section"
  end_section
  report
done
end_results
