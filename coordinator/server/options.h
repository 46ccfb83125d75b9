// ServerOptions: what a server is asked to be, in the field's usual words; and the flags that say
// it.
#ifndef TANDEM_COORDINATOR_SERVER_OPTIONS_H_
#define TANDEM_COORDINATOR_SERVER_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace tandem::coordinator {

// Which workers, on what, with which limits: shared by the server and by `tandem bench`.
struct WorkerOptions {
  std::string model;
  std::string device = "cpu";           // cpu|cuda
  double gpu_memory_utilization = 0.9;  // of each device's memory; with cuda
  bool enforce_eager = false;           // no CUDA graphs
  bool strict = true;  // what blocks a worker between ENCODE and WAIT fails the step
  std::string cpu_kernels = "auto";
  int tensor_parallel_size = 1;
  int threads_per_worker = 0;  // 0: cores / ranks
  uint32_t max_num_seqs = 32;
  uint32_t max_num_batched_tokens = 512;
  uint32_t chunked_prefill_size = 0;  // 0: max_num_batched_tokens
  uint32_t max_model_len = 0;         // 0: the file's context length
  bool expert_parallel = false;       // whole experts to ranks instead of columns of every expert
  std::string rope_scaling;           // empty: the file's own
  float rope_scale = 0;               // 0: the file's own
  uint32_t block_size = 16;
  uint32_t num_kv_blocks = 0;  // 0: what kv_cache_memory holds
  std::string kv_cache_memory = "auto";
  std::string kv_cache_type = "f16";
  std::string step_transport = "shm";
  std::string scheduling_policy = "decode-first";
  bool enable_prefix_caching = true;
  uint32_t max_queued_requests = 1024;
  double step_timeout_s = 60;
  double load_timeout_s = 600;
  std::string workers = "spawn";
  std::string worker_listen = "127.0.0.1:0";
  std::string worker_token_file;
  std::string worker_binary;  // empty: tandem_worker or tandem_worker_cuda beside this program
};

struct ServerOptions {
  WorkerOptions worker;
  std::string listen = "127.0.0.1:50051";
};

// Registers the flags on `app`; the values land in `options`, which must outlive the parse.
void AddWorkerFlags(CLI::App& app, WorkerOptions& options);
void AddServerFlags(CLI::App& app, ServerOptions& options);

// What needs no model to be seen as wrong: unknown names, zeros, budgets below max-num-seqs.
absl::Status Validate(const WorkerOptions& options);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SERVER_OPTIONS_H_
