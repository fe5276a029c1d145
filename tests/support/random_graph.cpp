// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_graph.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/step_builder.h"

namespace stowage::tests {

using ir::DType;
using ir::ValueId;

namespace {

// --- whole steps ----------------------------------------------------------------------------

enum class Optimizer { kSgd, kMomentum, kAdam, kFusedAdamW, kMasters };
enum class LayerKind {
  kLinear,
  kLinearRelu,  // in place
  kPointwise,
  kLayerNorm,
  kBatchNorm,
  kDropout,
  kResidual,
  kGate,
  kHalves,
  kSoftmax,
  kScale
};

// One layer: what it does, and the parameters that all micro-batches share.
struct Layer {
  LayerKind kind;
  std::string path;
  std::string op;  // of kPointwise
  Var weight;
  std::optional<Var> bias;
  BatchNormState statistics;  // of kBatchNorm
  ValueId constant;           // of kScale
  double probability = 0;
};

class StepMaker {
 public:
  StepMaker(uint64_t seed, const RandomStepOptions& options)
      : random_(seed), options_(options), builder_(drawOptions(seed)) {}

  ir::Graph make() {
    drawScalars();
    drawLayers();
    builder_.zeroGradients();
    const int64_t microBatches = random_.between(1, options_.maxMicroBatches);
    for (int64_t i = 0; i < microBatches; ++i) runMicroBatch(i);
    if (random_.chance(30)) builder_.clipGradients(1.0);
    update();
    return std::move(builder_).finish();
  }

 private:
  StepOptions drawOptions(uint64_t seed) {
    isMixed_ = random_.chance(25);
    return {.name = "step" + std::to_string(seed),
            .dtype = isMixed_ ? DType::kBF16 : DType::kF32,
            .persistentGradients = random_.chance(20),
            .inPlaceAccumulation = random_.chance(50),
            .hostStepCounters = options_.allowHost && random_.chance(30)};
  }

  void drawScalars() {
    lr_ = builder_.scalar("lr", -0.001);
    correction_ = builder_.scalar("bias_correction", 0.5);
  }

  int64_t drawWidth() { return random_.uneven(4, options_.maxWidth / 2) * 2; }

  // The first layer is an embedding or nothing; widths change in linear layers only.
  void drawLayers() {
    width_ = drawWidth();
    rows_ = random_.uneven(2, options_.maxRows);
    classes_ = drawWidth();
    hasEmbedding_ = random_.chance(40);
    if (hasEmbedding_) {
      vocabulary_ = drawWidth();
      embedding_ = builder_.parameter("wte", {vocabulary_, width_});
    }
    firstWidth_ = width_;
    const int64_t count = random_.between(1, options_.maxLayers);
    for (int64_t i = 0; i < count; ++i) layers_.push_back(drawLayer("layers." + std::to_string(i)));
    // Tied weights: the head reads the embedding's matrix.
    isTied_ = hasEmbedding_ && width_ == firstWidth_ && random_.chance(70);
    if (isTied_) {
      head_ = embedding_;
    } else {
      head_ = builder_.parameter("head.weight", {classes_, width_});
    }
  }

  Layer drawLayer(const std::string& path) {
    static constexpr std::array<const char*, 5> kPointwiseOps = {"relu", "gelu", "silu", "tanh",
                                                                 "sigmoid"};
    Layer layer{
        .kind = static_cast<LayerKind>(random_.between(0, static_cast<int64_t>(LayerKind::kScale))),
        .path = path};
    const bool frozen = random_.chance(20);
    switch (layer.kind) {
      case LayerKind::kLinear:
      case LayerKind::kLinearRelu: {
        const int64_t out = random_.chance(50) ? width_ : drawWidth();
        layer.weight = builder_.parameter(path + ".weight", {out, width_}, frozen);
        if (random_.chance(60)) layer.bias = builder_.parameter(path + ".bias", {out}, frozen);
        width_ = out;
        break;
      }
      case LayerKind::kLayerNorm:
      case LayerKind::kBatchNorm: {
        const bool fixed = frozen && layer.kind == LayerKind::kLayerNorm;
        layer.weight = builder_.parameter(path + ".weight", {width_}, fixed);
        layer.bias = builder_.parameter(path + ".bias", {width_}, fixed);
        if (layer.kind == LayerKind::kBatchNorm) {
          layer.statistics = builder_.batchNormState(path, width_);
        }
        break;
      }
      case LayerKind::kScale:
        layer.constant =
            builder_.buffer(path + ".factors", {width_}, isMixed_ ? DType::kBF16 : DType::kF32);
        break;
      case LayerKind::kPointwise:
        layer.op = random_.pick(kPointwiseOps);
        break;
      default:
        layer.probability = 0.1 * static_cast<double>(random_.between(1, 5));
    }
    return layer;
  }

  void runMicroBatch(int64_t index) {
    const std::string suffix = index == 0 ? "" : "." + std::to_string(index);
    builder_.enter("embedding");
    Var x;
    if (hasEmbedding_) {
      x = builder_.embedding(embedding_, builder_.input("tokens" + suffix, DType::kI64, {rows_}));
    } else {
      x = builder_.asVar(builder_.input("x" + suffix, isMixed_ ? DType::kBF16 : DType::kF32,
                                        {rows_, firstWidth_}));
    }
    std::vector<Var> earlier = {x};
    for (const Layer& layer : layers_) {
      builder_.enter(layer.path);
      x = runLayer(layer, x, earlier);
      earlier.push_back(x);
    }
    const ValueId target = builder_.input("target" + suffix, DType::kI64, {rows_});
    builder_.enter("head");
    const Var logits = builder_.linear(x, head_, std::nullopt);
    if (random_.chance(40)) builder_.reportMaximum(logits, "maximum" + suffix);
    builder_.enter("loss");
    builder_.backward(builder_.crossEntropy(logits, target, "loss" + suffix));
  }

  Var runLayer(const Layer& layer, Var x, const std::vector<Var>& earlier) {
    switch (layer.kind) {
      case LayerKind::kLinear:
        return builder_.linear(x, layer.weight, layer.bias);
      case LayerKind::kLinearRelu:
        return builder_.reluInPlace(builder_.linear(x, layer.weight, layer.bias));
      case LayerKind::kPointwise:
        return builder_.pointwise(layer.op, x);
      case LayerKind::kLayerNorm:
        return builder_.layerNorm(x, layer.weight, *layer.bias);
      case LayerKind::kBatchNorm:
        return builder_.batchNorm(x, layer.weight, *layer.bias, layer.statistics);
      case LayerKind::kDropout:
        return builder_.dropout(x, layer.probability);
      case LayerKind::kResidual:
        return builder_.add(x, matching(x, earlier));
      case LayerKind::kGate:
        return builder_.multiply(builder_.pointwise("silu", x), matching(x, earlier));
      case LayerKind::kHalves: {
        const int64_t half = builder_.columnCount(x) / 2;
        const Var left = builder_.pointwise("tanh", builder_.columns(x, 0, half));
        const Var right = builder_.columns(x, half, 2 * half);
        return builder_.concatenate({right, left});
      }
      case LayerKind::kSoftmax:
        return builder_.softmax(x);
      case LayerKind::kScale:
        return builder_.scale(x, layer.constant);
    }
    return x;
  }

  // The oldest activation of the same width: long lifetimes.
  Var matching(Var x, const std::vector<Var>& earlier) {
    for (const Var& candidate : earlier) {
      if (builder_.columnCount(candidate) == builder_.columnCount(x)) return candidate;
    }
    return x;
  }

  void update() {
    switch (static_cast<Optimizer>(random_.between(0, isMixed_ ? 4 : 3))) {
      case Optimizer::kSgd:
        return builder_.updateSgd(lr_, 0, random_.chance(50) ? 0.01 : 0);
      case Optimizer::kMomentum:
        return builder_.updateSgd(lr_, 0.9, 0);
      case Optimizer::kAdam:
        return builder_.updateAdam(lr_, correction_);
      case Optimizer::kFusedAdamW:
        return builder_.updateFusedAdamW(lr_, static_cast<int>(random_.between(1, 4)));
      case Optimizer::kMasters:
        return builder_.updateMasters(lr_);
    }
  }

  Random random_;
  RandomStepOptions options_;
  bool isMixed_ = false;
  StepBuilder builder_;
  ir::ScalarId lr_, correction_;
  int64_t width_ = 0, firstWidth_ = 0, rows_ = 0, classes_ = 0, vocabulary_ = 0;
  bool hasEmbedding_ = false, isTied_ = false;
  Var embedding_, head_;
  std::vector<Layer> layers_;
};

}  // namespace

ir::Graph makeRandomStep(uint64_t seed, const RandomStepOptions& options) {
  return StepMaker(seed, options).make();
}

// --- costs ----------------------------------------------------------------------------------

ir::CostTable makeRandomCosts(const ir::Graph& graph, uint64_t seed) {
  Random random(seed ^ 0xc057);
  Random launches(seed ^ 0x155e);
  ir::CostTable table{.source = ir::CostSource::kGiven, .device = "test"};
  const auto link = [&random] {
    return ir::LinkRate{.bandwidth = BytesPerSecond(random.between(1, 20) * 100'000'000),
                        .latency = Nanoseconds(random.between(0, 2000))};
  };
  table.links = {.deviceToHost = link(),
                 .hostToDevice = link(),
                 .diskRead = link(),
                 .diskWrite = link(),
                 .bothPermille = static_cast<int>(random.between(500, 1000))};
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ir::NodeId id(i);
    int64_t touched = 0;
    int fresh = 0;
    for (const ir::Access& access : graph.accesses(id)) {
      touched += graph.storage(access.storage).bytes.value();
      if (access.whole && access.writtenVersion == 1) ++fresh;
    }
    ir::OpCost cost{.work = Nanoseconds(random.uneven(100, 100 + touched)),
                    .temporary = Bytes(random.chance(70) ? 0 : random.between(0, touched / 2)),
                    .allocations = fresh};
    for (int k = 0; k < fresh; ++k) cost.resultOrdinals.push_back(k);
    if (launches.chance(30)) cost.launch = Nanoseconds(launches.between(1, 6 * cost.work.value()));
    table.bySignature.try_emplace(nodeSignature(graph, id), std::move(cost));
  }
  if (launches.chance(50)) table.links.launch = Nanoseconds(launches.between(1, 2000));
  return table;
}

ir::Target makeTestTarget() {
  ir::Target target{.profile = "test", .intraOpThreads = 1};
  target.memory = Bytes(int64_t{1} << 30);
  return target;
}

}  // namespace stowage::tests
