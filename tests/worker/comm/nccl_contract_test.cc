// The communicator's contract on NCCL, emulated: a thread, a device and a stream per rank.
#include "gtest/gtest.h"
#include "tests/common/transport/memory_rendezvous.h"
#include "tests/contract/communicator_contract.h"
#include "tools/cuda_emulation/emulated_backend.h"
#include "worker/comm/nccl_communicator.h"

namespace tandem::worker {
namespace {

class NcclRank : public ContractRank {
 public:
  NcclRank(int rank, int size, transport::Rendezvous& rendezvous)
      : backend_(kernels::cuda::MakeEmulatedBackend().value()) {
    comm_ = OpenNcclCommunicator({.rank = rank,
                                  .size = size,
                                  .epoch = Epoch{1},
                                  .rendezvous = rendezvous,
                                  .device_stream = backend_->device_stream(),
                                  .deadline = Deadline::After(std::chrono::seconds(60))})
                .value();
    backend_->BeginEncode(kernels::EncodeMode::kRun);
  }

  Communicator& comm() override { return *comm_; }
  absl::Status Run(Deadline deadline) override {
    absl::Status status = backend_->SubmitAndWait(deadline);
    backend_->BeginEncode(kernels::EncodeMode::kRun);
    return status;
  }

 private:
  const std::unique_ptr<kernels::Backend> backend_;
  std::unique_ptr<Communicator> comm_;
};

std::vector<std::unique_ptr<ContractRank>> MakeNcclRanks(int size) {
  transport::MemoryRendezvous rendezvous;
  std::vector<std::unique_ptr<ContractRank>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<NcclRank>(rank, size, rendezvous));
  }
  return ranks;
}

INSTANTIATE_TEST_SUITE_P(Nccl, CommunicatorContract,
                         testing::Values(CommunicatorFactory{.name = "Emulated",
                                                             .make = MakeNcclRanks,
                                                             .ranks_know_each_other = false}),
                         CommunicatorFactoryName);

}  // namespace
}  // namespace tandem::worker
