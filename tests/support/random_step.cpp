// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_step.h"

#include <random>
#include <string>
#include <vector>

#include "ir/graph/op_table.h"
#include "ir/schedule/fingerprint.h"

namespace stowage::tests {

namespace {

using ir::Role;
using ir::ValueId;

class StepMaker {
 public:
  explicit StepMaker(const StepShape& shape)
      : shape_(shape), random_(shape.seed), builder_("random" + std::to_string(shape.seed)) {}

  ir::Graph make() {
    makeWeights();
    phase_ = ir::Phase::kForward;
    ValueId x = declare("x", Role::kInput, width());
    for (int layer = 0; layer < shape_.layers; ++layer) x = forward(x);
    const ValueId loss = declare("loss", Role::kActivation, 1);
    builder_.storage(storageOf(loss)).output = true;
    launch("aten.sum.default", {x}, {loss});
    phase_ = ir::Phase::kBackward;
    backward(loss);
    phase_ = ir::Phase::kOptimizer;
    for (const auto& [weight, gradient] : pending_) update(weight, gradient);
    return std::move(builder_).finish();
  }

 private:
  struct Layer {
    ValueId in, out, mask;
    int weight = -1;
  };

  int64_t draw(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }
  bool chance(int percent) { return draw(100) < percent; }
  int64_t width() { return shape_.alike ? 64 : int64_t{1} << draw(9); }
  ir::StorageId storageOf(ValueId value) { return builder_.value(value).storage; }
  int64_t widthOf(ValueId value) { return builder_.value(value).type.sizes[0]; }

  ValueId declare(const std::string& name, Role role, int64_t rows) {
    const bool persistent =
        role != Role::kInput && role != Role::kActivation && role != Role::kGradient;
    ir::TensorType type{.dtype = ir::DType::kF32, .sizes = {rows, 16}, .strides = {16, 1}};
    const ir::StorageId storage = builder_.addStorage(
        {.name = name, .bytes = type.extentBytes(), .role = role, .persistent = persistent});
    return builder_.addValue({.name = name, .storage = storage, .type = std::move(type)});
  }
  std::string fresh(const char* prefix) { return prefix + std::to_string(count_++); }

  void launch(const std::string& op, const std::vector<ValueId>& args,
              const std::vector<ValueId>& results,
              const std::vector<ir::Node::Write>& writes = {}) {
    ir::Node node{.op = op};
    for (const ValueId value : args) node.args.push_back(ir::ValueArg{value});
    node.results.assign(results.begin(), results.end());
    node.writes.assign(writes.begin(), writes.end());
    node.phase = phase_;
    builder_.addNode(std::move(node));
  }

  void makeWeights() {
    const int count = 1 + static_cast<int>(draw(shape_.layers + 1));
    for (int i = 0; i < count; ++i) {
      const bool frozen = chance(25);
      weights_.push_back(declare(fresh("w"), frozen ? Role::kFrozen : Role::kParameter, width()));
      states_.push_back(frozen ? ValueId()
                               : declare(fresh("m"), Role::kState, widthOf(weights_.back())));
      const bool keepsGradient = !frozen && chance(20);
      gradients_.push_back(keepsGradient
                               ? declare(fresh("pg"), Role::kGradient, widthOf(weights_.back()))
                               : ValueId());
      if (keepsGradient) builder_.storage(storageOf(gradients_.back())).persistent = true;
    }
    if (chance(30)) buffer_ = declare("buffer", Role::kBuffer, width());
    if (chance(20)) declare("untouched", Role::kConstant, width());
  }

  ValueId forward(ValueId x) {
    Layer made{.in = x};
    made.weight = static_cast<int>(draw(static_cast<int64_t>(weights_.size())));
    made.out = declare(fresh("h"), Role::kActivation, shape_.alike ? 64 : width());
    launch("aten.mm.default", {x, weights_[static_cast<size_t>(made.weight)]}, {made.out});
    if (chance(30)) launch("aten.relu_.default", {made.out}, {made.out}, {{made.out, false}});
    if (buffer_.isValid() && chance(50)) {
      launch("aten.add_.Tensor", {buffer_, made.out}, {buffer_}, {{buffer_, false}});
    }
    ValueId y = made.out;
    if (chance(50)) y = activate(made.out);
    if (chance(25)) {
      const ValueId dropped = declare(fresh("d"), Role::kActivation, widthOf(y));
      made.mask = declare(fresh("k"), Role::kActivation, 1 + widthOf(y) / 4);
      launch("aten.native_dropout.default", {y}, {dropped, made.mask});
      y = dropped;
    }
    if (!layers_.empty() && chance(35)) {
      const ValueId sum = declare(fresh("s"), Role::kActivation, widthOf(y));
      const size_t skipped = static_cast<size_t>(draw(static_cast<int64_t>(layers_.size())));
      launch("aten.add.Tensor", {y, layers_[skipped].out}, {sum});
      y = sum;
    }
    layers_.push_back(made);
    return y;
  }

  ValueId activate(ValueId x) {
    const ValueId y = declare(fresh("a"), Role::kActivation, widthOf(x));
    launch(chance(50) ? "aten.gelu.default" : "aten.silu.default", {x}, {y});
    return y;
  }

  void backward(ValueId loss) {
    ValueId grad = loss;
    for (size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      const ValueId weight = weights_[static_cast<size_t>(layer.weight)];
      if (layer.mask.isValid()) {
        const ValueId next = declare(fresh("g"), Role::kActivation, widthOf(layer.out));
        launch("aten.mul.Tensor", {grad, layer.mask}, {next});
        grad = next;
      }
      const ValueId inner = declare(fresh("g"), Role::kActivation, widthOf(layer.out));
      launch("aten.mul.Tensor", {grad, layer.out}, {inner});
      if (states_[static_cast<size_t>(layer.weight)].isValid()) addGradient(layer, inner);
      grad = declare(fresh("g"), Role::kActivation, widthOf(layer.in));
      launch("aten.mm.default", {inner, weight}, {grad});
      if (chance(30)) updateEarly(static_cast<size_t>(layer.weight), i);
    }
  }

  // Once no layer that is still to come reads the weight.
  void updateEarly(size_t weight, size_t layersLeft) {
    for (size_t i = 0; i < layersLeft; ++i) {
      if (layers_[i].weight == static_cast<int>(weight)) return;
    }
    for (size_t i = 0; i < pending_.size(); ++i) {
      if (pending_[i].first != weight) continue;
      update(weight, pending_[i].second);
      pending_.erase(pending_.begin() + static_cast<int64_t>(i));
      return;
    }
  }

  void addGradient(const Layer& layer, ValueId grad) {
    const auto weight = static_cast<size_t>(layer.weight);
    for (auto& [which, sum] : pending_) {
      if (which != weight) continue;
      const ValueId part = declare(fresh("p"), Role::kGradient, widthOf(weights_[weight]));
      launch("aten.mm.default", {layer.in, grad}, {part});
      launch("aten.add_.Tensor", {sum, part}, {sum}, {{sum, false}});
      return;
    }
    ValueId sum = gradients_[weight];
    if (sum.isValid()) {
      launch("aten.copy_.default", {sum, grad}, {sum}, {{sum, true}});
    } else {
      sum = declare(fresh("pg"), Role::kGradient, widthOf(weights_[weight]));
      launch("aten.mm.default", {layer.in, grad}, {sum});
    }
    pending_.push_back({weight, sum});
  }

  void update(size_t weight, ValueId gradient) {
    launch("aten.add_.Tensor", {states_[weight], gradient}, {states_[weight]},
           {{states_[weight], false}});
    launch("aten.add_.Tensor", {weights_[weight], states_[weight]}, {weights_[weight]},
           {{weights_[weight], false}});
  }

  StepShape shape_;
  std::mt19937_64 random_;
  ir::GraphBuilder builder_;
  ir::Phase phase_ = ir::Phase::kForward;
  int count_ = 0;
  std::vector<ValueId> weights_, states_, gradients_;
  ValueId buffer_;
  std::vector<Layer> layers_;
  std::vector<std::pair<size_t, ValueId>> pending_;
};

}  // namespace

ir::Graph makeRandomStep(const StepShape& shape) { return StepMaker(shape).make(); }

ir::Target makeSmallTarget(uint64_t seed) {
  ir::Target target;
  target.profile = "small";
  target.alignBytes = 64;
  if (seed % 3 == 0) target.reserved.push_back({.what = "workspace", .bytes = Bytes(1000)});
  return target;
}

ir::CostTable makeRandomCosts(const ir::Graph& graph, uint64_t seed, int64_t bytesPerMicrosecond) {
  std::mt19937_64 random(seed);
  ir::CostTable table{.source = ir::CostSource::kGiven, .device = "random"};
  const ir::LinkRate rate{.bandwidth = BytesPerSecond(bytesPerMicrosecond * 1'000'000),
                          .latency = Nanoseconds(static_cast<int64_t>(random() % 200))};
  table.links = {.deviceToHost = rate, .hostToDevice = rate};
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto time = static_cast<int64_t>(random() % 3000);
    const auto temporary = static_cast<int64_t>(random() % 4 == 0 ? random() % 4096 : 0);
    table.bySignature[ir::nodeSignature(graph, ir::NodeId(i))] = {.work = Nanoseconds(time),
                                                                  .temporary = Bytes(temporary)};
  }
  if (seed % 4 != 1) return table;
  // Some of these steps are launch-bound.
  std::mt19937_64 launches(seed ^ 0x155e);
  table.links.launch = Nanoseconds(static_cast<int64_t>(launches() % 1000));
  for (auto& [signature, cost] : table.bySignature) {
    cost.launch = Nanoseconds(static_cast<int64_t>(launches() % 3000));
  }
  return table;
}

ir::Schedule toSchedule(const ir::Graph& graph, const ir::Target& target,
                        const planner::Timetable& timetable, Bytes budget) {
  ir::Schedule schedule{.level = ir::Level::kSynced,
                        .graphFingerprint = ir::fingerprint(graph),
                        .targetFingerprint = ir::fingerprint(target),
                        .opTableVersion = ir::opTableVersion()};
  schedule.arenas.push_back(
      {.space = ir::Space::kDevice, .bytes = budget > Bytes(0) ? budget : timetable.devicePeak});
  schedule.arenas.push_back({.space = ir::Space::kHost, .bytes = timetable.hostPeak});
  schedule.reserved = timetable.reserved;
  schedule.joined = timetable.joined;
  schedule.decisions = timetable.decisions.rows;
  schedule.residencies = timetable.residencies;
  schedule.boundary = timetable.boundary;
  for (const planner::TimedAction& action : timetable.actions) {
    schedule.commands.push_back(action.command);
  }
  const planner::Dependencies dependencies = planner::computeDependencies(
      graph, target, schedule.residencies, schedule.boundary, schedule.commands);
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    const auto& wait = dependencies.wait[i];
    const auto& prev = dependencies.prev[i];
    schedule.commands[i].wait.assign(wait.begin(), wait.end());
    if (!schedule.joined) schedule.commands[i].prev.assign(prev.begin(), prev.end());
  }
  schedule.predicted.peakBytes = timetable.devicePeak;
  schedule.predicted.hostPeakBytes = timetable.hostPeak;
  schedule.predicted.bytesOut = timetable.bytesOut;
  schedule.predicted.bytesIn = timetable.bytesIn;
  return schedule;
}

}  // namespace stowage::tests
