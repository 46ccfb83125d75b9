#include "coordinator/cluster/worker_identity.h"

#include <gtest/gtest.h>

#include <optional>

namespace tandem::coordinator {
namespace {

TEST(WorkerIdentityTest, TheCertificatesNamesSayTheRank) {
  EXPECT_EQ(WorkerIdentity::FromNames({"tandem-worker"})->rank, std::nullopt);
  EXPECT_EQ(WorkerIdentity::FromNames({"node.example", "tandem-worker-3"})->rank, 3);
  EXPECT_EQ(WorkerIdentity::FromNames({"tandem-worker-3", "tandem-worker"})->rank, std::nullopt);
}

TEST(WorkerIdentityTest, OthersAreNoWorkers) {
  for (const char* name :
       {"tandem-coordinator", "tandem-worker-", "tandem-worker-x", "tandem-worker-1x",
        "tandem-worker--1", "tandem-worker-99999999999", "xtandem-worker", ""}) {
    EXPECT_EQ(WorkerIdentity::FromNames({name}).status().code(),
              absl::StatusCode::kPermissionDenied)
        << name;
  }
  EXPECT_FALSE(WorkerIdentity::FromNames({}).ok());
}

TEST(WorkerIdentityTest, ARankIsTheCertificatesOrAny) {
  const WorkerIdentity any{};
  EXPECT_EQ(*any.Admit(std::nullopt), std::nullopt);
  EXPECT_EQ(*any.Admit(2), 2);
  const WorkerIdentity third{.rank = 3};
  EXPECT_EQ(*third.Admit(std::nullopt), 3);
  EXPECT_EQ(*third.Admit(3), 3);
  EXPECT_EQ(third.Admit(2).status().message(),
            "the certificate is of rank 3, the worker asks for rank 2");
}

}  // namespace
}  // namespace tandem::coordinator
