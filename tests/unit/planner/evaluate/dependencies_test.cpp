// SPDX-License-Identifier: Apache-2.0
//
// Which commands wait for which, from residencies, offsets and the enqueue order alone.
#include "planner/evaluate/dependencies.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using ir::ResidencyId;
using ir::Space;
using ir::Stream;
using tests::units;
using Lists = std::vector<std::vector<int32_t>>;

Lists numbers(const std::vector<std::vector<ir::CommandId>>& lists) {
  Lists result(lists.size());
  for (size_t i = 0; i < lists.size(); ++i) {
    for (const ir::CommandId id : lists[i]) result[i].push_back(id.raw());
  }
  return result;
}

ir::Command launch(int node) { return {.node = ir::NodeId(node)}; }
ir::Command copy(Stream stream, int from, int to) {
  ir::Command command{.kind = ir::CommandKind::kCopy, .stream = stream};
  command.from = ResidencyId(from);
  command.to = ResidencyId(to);
  return command;
}

/// The worked step: `a` is residency 0 on the host, 1 on the device until its offload, 2 after its
/// prefetch.
class DependenciesTest : public testing::Test {
 protected:
  DependenciesTest() {
    residencies = {
        {step.a(), Space::kHost, 0}, {step.a(), Space::kDevice, 0}, {step.a(), Space::kDevice, 0}};
    commands = {launch(0), copy(Stream::kDeviceToHost, 1, 0), launch(1),
                launch(2), copy(Stream::kHostToDevice, 0, 2), launch(3),
                launch(4)};
    commands[0].out = {ResidencyId(1)};
    commands[2].in = {ResidencyId(1)};
    commands[3].temp = {.offset = 0, .bytes = step.units(8)};
    commands[6].in = {ResidencyId(2)};
  }
  Dependencies compute() const {
    return computeDependencies(step.graph(), step.target(), residencies, {}, commands);
  }

  const tests::WorkedStep step;
  std::vector<ir::Residency> residencies;
  std::vector<ir::Command> commands;
};

// Offload: for make. Wide: its bytes are being read by the offload. Prefetch: for the offload, and
// for wide, whose bytes it takes. Last: for the prefetch. In the step before, `make` takes the
// bytes that the prefetch wrote and the offload overwrites the host copy that the prefetch read.
TEST_F(DependenciesTest, DataAndReusedBytesMakeCommandsWait) {
  const Dependencies found = compute();
  EXPECT_EQ(numbers(found.wait), (Lists{{}, {0}, {}, {1}, {1, 3}, {}, {4}}));
  EXPECT_EQ(numbers(found.prev), (Lists{{4}, {4}, {}, {}, {}, {}, {}}));
}

// With bytes of its own, `wide` waits for nothing, and the prefetch for the last reader, command 2.
TEST_F(DependenciesTest, OtherAddressesNeedOtherWaits) {
  commands[3].temp.offset = units(8);
  EXPECT_EQ(numbers(compute().wait), (Lists{{}, {0}, {}, {}, {1, 2}, {}, {4}}));
  residencies[2].offset = units(8);
  EXPECT_EQ(numbers(compute().wait), (Lists{{}, {0}, {}, {}, {1, 3}, {}, {4}}));
  EXPECT_EQ(numbers(compute().prev)[0], std::vector<int32_t>{1})
      << "of the bytes at 0 the offload of the step before was the last user";
}

// s0 has no bytes, s1 has some at the same offset. The copy of s0 waits for its own writer alone.
TEST(Dependencies, AStorageWithoutBytesHasItsOwnHistory) {
  const tests::SmallProblem small(
      {.items = {{ir::Role::kActivation, 0}, {ir::Role::kActivation, 1}},
       .nodes = {{.op = "test.make.default", .results = {0}},
                 {.op = "test.make.default", .results = {1}}}});
  const std::vector<ir::Residency> residencies = {{ir::StorageId(0), Space::kDevice, 0},
                                                  {ir::StorageId(0), Space::kHost, 0},
                                                  {ir::StorageId(1), Space::kDevice, 0}};
  std::vector<ir::Command> commands = {launch(0), launch(1), copy(Stream::kDeviceToHost, 0, 1)};
  commands[0].out = {ResidencyId(0)};
  commands[1].out = {ResidencyId(2)};
  const Dependencies found =
      computeDependencies(small.graph, small.target, residencies, {}, commands);
  EXPECT_EQ(numbers(found.wait), (Lists{{}, {}, {0}}));
  EXPECT_EQ(numbers(found.prev), (Lists{{2}, {}, {}}));
}

}  // namespace
}  // namespace stowage::planner
