// SPDX-License-Identifier: Apache-2.0
//
// A schedule of a hundred thousand commands, in which addresses are used again thousands of times:
// the verifier's time must grow with the number of commands, not with the number of pairs.
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>

#include "ir/verify/verify.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_schedule.h"

namespace stowage::tests {
namespace {

/// Blocks of layers forward and backward, as micro-batches have them: about 140 nodes a block.
ir::Graph makeLongStep(int blocks) {
  constexpr int kLayers = 70;
  const ir::TensorType type{.dtype = ir::DType::kF32, .sizes = {64}, .strides = {1}};
  ir::GraphBuilder builder("long");
  const auto add = [&](const std::string& name, ir::Role role, bool persistent) {
    const ir::StorageId storage = builder.addStorage(
        {.name = name, .bytes = type.extentBytes(), .role = role, .persistent = persistent});
    return builder.addValue({.name = name, .storage = storage, .type = type});
  };
  const auto multiply = [&](ir::ValueId a, ir::ValueId b, const std::string& name) {
    const ir::ValueId result = add(name, ir::Role::kActivation, false);
    ir::Node node{.op = "aten.mul.Tensor", .args = {ir::ValueArg{a}, ir::ValueArg{b}}};
    node.results = {result};
    builder.addNode(std::move(node));
    return result;
  };
  std::vector<ir::ValueId> weights;
  for (int i = 0; i < kLayers; ++i) {
    weights.push_back(add("w" + std::to_string(i), ir::Role::kFrozen, true));
  }
  for (int block = 0; block < blocks; ++block) {
    std::vector<ir::ValueId> kept = {weights[0]};
    for (int i = 0; i < kLayers; ++i) {
      const std::string name = "a" + std::to_string(block) + "." + std::to_string(i);
      kept.push_back(multiply(kept.back(), weights[static_cast<size_t>(i)], name));
    }
    ir::ValueId gradient = kept.back();
    for (int i = kLayers; i-- > 0;) {
      const std::string name = "d" + std::to_string(block) + "." + std::to_string(i);
      gradient = multiply(gradient, kept[static_cast<size_t>(i)], name);
    }
  }
  return std::move(builder).finish();
}

struct Measured {
  size_t commands = 0;
  double seconds = 0;  // of processor time
};

Measured measure(int blocks) {
  const ir::Graph graph = makeLongStep(blocks);
  const ir::Target target = makeTestTarget();
  const ir::Schedule schedule = makeRandomSchedule(
      graph, target, {.host = 300, .inPlaceReuse = 300, .temp = 200, .serialWaits = true});
  const std::clock_t begin = std::clock();
  const auto violations = ir::verify({.graph = graph, .schedule = schedule, .target = target});
  const std::clock_t end = std::clock();
  EXPECT_TRUE(violations.empty()) << violations.front().message;
  return {schedule.commands.size(), static_cast<double>(end - begin) / CLOCKS_PER_SEC};
}

TEST(VerifySpeed, GrowsWithTheNumberOfCommands) {
  const Measured small = measure(60);
  const Measured large = measure(480);
  std::printf("%zu commands: %.3f s, %zu commands: %.3f s\n", small.commands, small.seconds,
              large.commands, large.seconds);
  EXPECT_GE(large.commands, 100'000U);
  // Eight times the commands; pairs would take 64 times as long.
  EXPECT_LT(large.seconds, 24 * small.seconds + 0.1);
}

}  // namespace
}  // namespace stowage::tests
