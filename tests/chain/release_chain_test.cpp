// SPDX-License-Identifier: Apache-2.0
//
// The device memory of a training, given back and got again after every step: losses, parameters
// and optimizer state have the bits of plain libtorch, wherever the plan has its state meanwhile.
#include <gtest/gtest.h>

#include <llvm/ADT/STLExtras.h>

#include <vector>

#include "tests/support/chain.h"
#include "tests/support/disk_folder.h"

namespace stowage::tests {
namespace {

constexpr int64_t kSteps = 4;

const tools::Recipe kLlama = {.model = "llama", .settings = {"schedule=cosine", "clip=1"}};
const tools::Recipe kGpt2 = {.model = "gpt2", .settings = {"schedule=step", "clip=1"}};

bool isAnyOn(const passes::PlannedStep& planned, ir::Stream stream) {
  return llvm::any_of(planned.schedule.commands,
                      [&](const ir::Command& command) { return command.stream == stream; });
}

TEST(ReleaseChain, WithAllStateOnTheDevice) {
  const Chain chain(kLlama, kSteps);
  EXPECT_EQ(chain.differenceWithReleases(orFail(chain.plan(chain.keepAll()))), "");
}

TEST(ReleaseChain, WithStateOnTheHost) {
  const Chain chain(kGpt2, kSteps);
  for (const int64_t percent : {70, 45}) {
    const passes::PlannedStep planned = orFail(chain.plan(chain.share(percent)));
    EXPECT_TRUE(isAnyOn(planned, ir::Stream::kDeviceToHost));
    EXPECT_EQ(chain.differenceWithReleases(planned), "") << percent;
  }
}

TEST(ReleaseChain, WithUpdatesThatRunInTheNextStep) {
  const Chain chain(kGpt2, kSteps);
  const passes::PlannedStep planned =
      orFail(chain.planIn(passes::Order::kDeferred, chain.share(80)));
  EXPECT_TRUE(llvm::any_of(planned.graph.nodes(), [](const ir::Node& node) {
    return node.phase == ir::Phase::kDeferred;
  }));
  EXPECT_EQ(chain.differenceWithReleases(planned), "");
}

TEST(ReleaseChain, WithUpdatesOnTheHost) {
  const Chain chain(kLlama, kSteps);
  const passes::PlannedStep planned =
      orFail(chain.planWith({.budget = chain.share(60), .rowBlocks = {}, .hostUpdates = {100}}));
  EXPECT_TRUE(isAnyOn(planned, ir::Stream::kHostCompute));
  EXPECT_EQ(chain.differenceWithReleases(planned), "");
}

class ReleaseChainWithDisk : public DiskTest {};

TEST_F(ReleaseChainWithDisk, KeepsItsBits) {
  const Chain chain(kGpt2, kSteps);
  const passes::PlannedStep planned =
      orFail(chain.planWith({.budget = chain.share(60),
                             .allowed = {.disk = true},
                             .limits = {.disk = Bytes(int64_t{1} << 30)},
                             .pins = {{"v(*)", ir::GapAction::kDisk}},
                             .rowBlocks = {}}));
  EXPECT_TRUE(isAnyOn(planned, ir::Stream::kDiskRead));
  runtime::RunnerOptions options;
  options.diskFolder = folder_;
  EXPECT_EQ(chain.differenceWithReleases(planned, std::move(options)), "");
}

}  // namespace
}  // namespace stowage::tests
