// SPDX-License-Identifier: Apache-2.0
#include "tests/support/small_step.h"

#include <algorithm>
#include <random>
#include <utility>

namespace stowage::tests {

namespace {

using ir::Role;

class StepDrawer {
 public:
  explicit StepDrawer(uint64_t seed) : random_(seed) {}

  SmallStep draw() {
    step_.outPerUnit = 1 + below(2);
    step_.inPerUnit = 1 + below(2);
    const int count = 4 + below(2);
    for (int i = 0; i < count; ++i)
      step_.items.push_back({.role = drawRole(i), .units = 1 + below(3)});
    made_.resize(step_.items.size());
    for (size_t i = 0; i < step_.items.size(); ++i) {
      made_[i] = step_.items[i].role != Role::kActivation;
    }
    const int nodes = 4 + below(6);
    for (int k = 0; k < nodes; ++k) step_.nodes.push_back(drawNode(2 * k < nodes));
    return std::move(step_);
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  Role drawRole(int index) {
    if (index < 2) return Role::kActivation;
    const Role roles[] = {Role::kActivation, Role::kActivation, Role::kActivation,
                          Role::kParameter,  Role::kParameter,  Role::kParameter,
                          Role::kFrozen,     Role::kInput,      Role::kGradient};
    return roles[below(9)];
  }

  int pick(bool made) {
    std::vector<int> those;
    for (size_t i = 0; i < made_.size(); ++i) {
      if (made_[i] == made) those.push_back(static_cast<int>(i));
    }
    return those.empty() ? -1 : those[static_cast<size_t>(below(static_cast<int>(those.size())))];
  }

  void addReads(SmallNode& node, int most) {
    for (int k = 0; k < most; ++k) {
      const int item = pick(/*made=*/true);
      if (item >= 0 && std::find(node.reads.begin(), node.reads.end(), item) == node.reads.end()) {
        node.reads.push_back(item);
      }
    }
  }

  // The first half makes, the second half reads: as in training, much lies in between.
  SmallNode drawNode(bool isEarly) {
    SmallNode node{.op = "aten.mm.default", .time = 1 + below(3)};
    if (below(6) == 0) node.temporary = 1 + below(2);
    addReads(node, 1 + below(2));
    const int kind = below(10);
    if (kind < (isEarly ? 8 : 2) && pick(/*made=*/false) >= 0) {
      makeResults(node);
    } else if (kind < 6) {
      update(node);
    } else if (kind == 8) {
      node.op = "test.opaque.default";
    }
    return node;
  }

  void makeResults(SmallNode& node) {
    addResult(node);
    const int way = below(4);
    if (way == 0 && pick(/*made=*/false) >= 0) {
      node.op = "aten.native_layer_norm.default";
      addResult(node);
    } else if (way == 1 && !node.reads.empty()) {
      node.op = "aten.relu.default";  // may take its operand over
      node.reads.resize(1);
      step_.items[static_cast<size_t>(node.results[0])].units =
          step_.items[static_cast<size_t>(node.reads[0])].units;
    } else if (way == 2) {
      node.op = "test.opaque.default";  // not recomputable
    }
  }

  void addResult(SmallNode& node) {
    const int item = pick(/*made=*/false);
    node.results.push_back(item);
    made_[static_cast<size_t>(item)] = true;
  }

  void update(SmallNode& node) {
    const int item = pick(/*made=*/true);
    if (item < 0) return;
    const Role role = step_.items[static_cast<size_t>(item)].role;
    std::erase(node.reads, item);
    if (role == Role::kGradient) {
      node.op = "aten.copy_.default";
      node.whole = true;
      node.updates = {item};
      return;
    }
    if (role == Role::kFrozen || role == Role::kInput) return;
    node.op = role == Role::kActivation ? "aten.relu_.default" : "aten.add_.Tensor";
    if (role == Role::kActivation) node.reads.clear();
    node.reads.insert(node.reads.begin(), item);
    node.updates = {item};
  }

  std::mt19937_64 random_;
  SmallStep step_;
  std::vector<bool> made_;
};

}  // namespace

bool isPersistent(const SmallItem& item) {
  return item.role != Role::kActivation && item.role != Role::kInput;
}

SmallStep drawSmallStep(uint64_t seed) { return StepDrawer(seed).draw(); }

ir::Graph toGraph(const SmallStep& step) {
  ir::GraphBuilder builder("small");
  std::vector<ir::ValueId> values;
  for (size_t i = 0; i < step.items.size(); ++i) {
    const SmallItem& item = step.items[i];
    const std::string name = "s" + std::to_string(i);
    ir::TensorType type{.dtype = ir::DType::kF32, .sizes = {16 * item.units}, .strides = {1}};
    const ir::StorageId storage = builder.addStorage({.name = name,
                                                      .bytes = Bytes(item.units * kUnitBytes),
                                                      .role = item.role,
                                                      .persistent = isPersistent(item)});
    values.push_back(builder.addValue({.name = name, .storage = storage, .type = std::move(type)}));
  }
  for (const SmallNode& small : step.nodes) {
    ir::Node node{.op = small.op, .phase = small.phase};
    if (small.whole)
      node.args.push_back(ir::ValueArg{values[static_cast<size_t>(small.updates[0])]});
    for (const int item : small.reads) {
      node.args.push_back(ir::ValueArg{values[static_cast<size_t>(item)]});
    }
    for (const int item : small.results) {
      node.results.push_back(values[static_cast<size_t>(item)]);
    }
    for (const int item : small.updates) {
      node.writes.push_back({values[static_cast<size_t>(item)], small.whole});
      if (!small.whole) node.results.push_back(values[static_cast<size_t>(item)]);
    }
    builder.addNode(std::move(node));
  }
  return std::move(builder).finish();
}

ir::Target smallTarget() {
  ir::Target target;
  target.profile = "units";
  target.alignBytes = kUnitBytes;
  return target;
}

planner::Problem toProblem(const SmallStep& step, const ir::Graph& graph,
                           const ir::Target& target) {
  const auto rate = [](int timePerUnit) {
    return ir::LinkRate{
        .bandwidth = BytesPerSecond(kUnitBytes * 1'000'000'000 / (kUnitTime * timePerUnit)),
        .latency = Nanoseconds()};
  };
  ir::NodeCosts costs{
      .nodes = {},
      .links = {.deviceToHost = rate(step.outPerUnit), .hostToDevice = rate(step.inPerUnit)}};
  for (const SmallNode& node : step.nodes) {
    costs.nodes.push_back({.work = Nanoseconds(node.time * kUnitTime),
                           .temporary = Bytes(node.temporary * kUnitBytes)});
  }
  return {.graph = graph,
          .target = target,
          .costs = std::move(costs),
          .allowed = {},
          .limits = {},
          .pins = {},
          .pinnedRows = {},
          .graphMode = ir::GraphMode::kNone,
          .lives = ir::computeLives(graph)};
}

}  // namespace stowage::tests
