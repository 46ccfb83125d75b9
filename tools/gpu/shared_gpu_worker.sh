#!/usr/bin/env bash
# A worker for tests with more ranks than GPUs: tandem_worker_cuda on GPU 0, for every rank. NCCL
# rejects two ranks of one host on one GPU, so each reports a different host; they communicate over
# loopback.
set -euo pipefail
rank=auto
for ((i = 1; i < $#; i++)); do
  next=$((i + 1))
  [[ ${!i} == --rank ]] && rank=${!next}
done
export NCCL_HOSTID="tandem-rank-$rank" NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo}
exec "$(dirname "${BASH_SOURCE[0]}")/worker/tandem_worker_cuda" "$@" --device-index 0
