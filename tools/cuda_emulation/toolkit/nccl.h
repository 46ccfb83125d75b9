// What Tandem calls of NCCL, under NCCL's own names and with its meanings, between processes or
// threads of one machine (NCCL 2.28 user guide, "Communicator creation", "Fault tolerance").
//
// Where NCCL may behave in several ways, this takes the worst:
//   - a blocking communicator connects a kind of collective when it is first used, and waits there
//     for its peers; a non-blocking one reports ncclInProgress for a while after every call;
//   - if a peer is lost, collectives on the stream hang, without an asynchronous error;
//   - ncclCommAbort ends them, but returns only once no graph holds a collective.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_TOOLKIT_NCCL_H_
#define TANDEM_TOOLS_CUDA_EMULATION_TOOLKIT_NCCL_H_

#include <cuda_runtime.h>

#include <cstddef>

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};
enum ncclDataType_t { ncclInt8 = 0, ncclFloat32 = 7 };
enum ncclRedOp_t { ncclSum = 0 };

struct ncclUniqueId {
  char internal[128];
};
struct ncclConfig_t {
  int blocking = 1;
};
#define NCCL_CONFIG_INITIALIZER \
  {}

struct EmulatedComm;
using ncclComm_t = EmulatedComm*;

const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclMemAlloc(void** data, size_t bytes);
ncclResult_t ncclMemFree(void* data);

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream);
// In a group of one send and any number of receives, one per peer.
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);

#endif  // TANDEM_TOOLS_CUDA_EMULATION_TOOLKIT_NCCL_H_
