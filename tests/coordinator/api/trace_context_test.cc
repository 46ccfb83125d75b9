#include "coordinator/api/trace_context.h"

#include <gtest/gtest.h>

namespace tandem::coordinator {
namespace {

TEST(TraceContextTest, TheTraceIdIsTheSecondField) {
  EXPECT_EQ(TraceId("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            "4bf92f3577b34da6a3ce929d0e0e4736");
  // A later version with a field more.
  EXPECT_EQ(TraceId("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"),
            "4bf92f3577b34da6a3ce929d0e0e4736");
}

TEST(TraceContextTest, AnythingElseIsNone) {
  for (const char* malformed : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
                                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
                                "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                                "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                                "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                "00-4bf92f3577b34da6a3ce929d0e0e473\"-00f067aa0ba902b7-01",
                                "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}) {
    EXPECT_EQ(TraceId(malformed), "") << malformed;
  }
}

}  // namespace
}  // namespace tandem::coordinator
