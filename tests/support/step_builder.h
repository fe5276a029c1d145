// SPDX-License-Identifier: Apache-2.0
//
// Writes whole training steps as graphs of real ATen calls: schemas, shapes and aliases are those
// of libtorch on the CPU, so a step can be planned, verified, run on the fake device, and run for
// real. Forward calls leave a tape; `backward` walks it as autograd would: the first gradient of a
// parameter is stolen from the op that makes it, later ones are added to it. Ops work on matrices
// of `rows x columns` in one dtype. Use: declare, compute, `backward`, an optimizer, `finish`.
#ifndef STOWAGE_TESTS_SUPPORT_STEP_BUILDER_H_
#define STOWAGE_TESTS_SUPPORT_STEP_BUILDER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"

namespace stowage::tests {

struct StepOptions {
  std::string name = "step";
  ir::DType dtype = ir::DType::kF32;
  bool persistentGradients = false;  // zeroed at the begin, always added to
  bool inPlaceAccumulation = false;  // of gradients of activations that have several users
  bool hostStepCounters = false;     // as in a CUDA step
};

/// A tensor that gradients may flow to. An in-place op gives a new one for the same value.
struct Var {
  ir::ValueId value;
  int index = -1;
  bool needsGrad = false;
  bool isParameter = false;
};

/// Buffers of one batch norm, shared by all its calls.
struct BatchNormState {
  ir::ValueId runningMean, runningVar, batches;
};

class StepBuilder {
 public:
  explicit StepBuilder(StepOptions options);

  // --- declarations
  ir::ValueId input(const std::string& name, ir::DType dtype, std::vector<int64_t> sizes);
  Var parameter(const std::string& name, std::vector<int64_t> sizes, bool frozen = false);
  ir::ValueId buffer(const std::string& name, std::vector<int64_t> sizes, ir::DType dtype);
  ir::ScalarId scalar(const std::string& name, double value);
  /// Module path of the nodes that follow.
  void enter(const std::string& path);
  BatchNormState batchNormState(const std::string& name, int64_t width);

  // --- forward
  Var asVar(ir::ValueId value);
  Var linear(Var x, Var weight, std::optional<Var> bias);
  /// One of relu gelu silu tanh sigmoid.
  Var pointwise(const std::string& op, Var x);
  /// Only on a fresh result that no backward needs (of `linear`, say).
  Var reluInPlace(Var x);
  Var add(Var a, Var b);
  Var multiply(Var a, Var b);
  Var scale(Var x, ir::ValueId row);
  Var softmax(Var x);
  Var dropout(Var x, double probability);
  Var layerNorm(Var x, Var weight, Var bias);
  Var batchNorm(Var x, Var weight, Var bias, const BatchNormState& state);
  Var embedding(Var weight, ir::ValueId tokens);
  /// Columns [begin, end) as a view.
  Var columns(Var x, int64_t begin, int64_t end);
  Var concatenate(const std::vector<Var>& parts);
  /// Mean cross entropy in f32; delivered after the step.
  Var crossEntropy(Var logits, ir::ValueId target, const std::string& name);
  /// Row maximum, delivered after the step; its indices go unused.
  void reportMaximum(Var x, const std::string& name);

  // --- backward and update
  /// With persistent gradients, after all parameters and before the first forward call.
  void zeroGradients();
  void backward(Var loss);
  /// Total norm of all gradients, delivered; gradients are scaled in place.
  void clipGradients(double maxNorm);
  void updateSgd(ir::ScalarId negativeLr, double momentum, double weightDecay);
  void updateAdam(ir::ScalarId stepSize, ir::ScalarId biasCorrection);
  /// One call per `bucket` parameters.
  void updateFusedAdamW(ir::ScalarId lr, int bucket);
  /// SGD on fp32 masters, copied to the parameters.
  void updateMasters(ir::ScalarId negativeLr);

  int64_t rows(Var x) { return type(x.value).sizes[0]; }
  int64_t columnCount(Var x) { return type(x.value).sizes[1]; }
  ir::Graph finish() &&;

 private:
  struct TapeEntry {
    int output;
    std::string path;
    std::function<void(ir::ValueId gradient)> backward;
  };
  struct Gradient {
    ir::ValueId value;
    bool owned = false;  // nobody else reads its storage
  };

  ir::ValueId addStorageWithValue(ir::Storage storage, ir::DType dtype, std::vector<int64_t> sizes);
  ir::ValueId fresh(const std::string& op, ir::DType dtype, std::vector<int64_t> sizes);
  ir::ValueId view(ir::ValueId base, ir::TensorType type);
  ir::ValueId transposed(ir::ValueId matrix);
  ir::ValueId slice(ir::ValueId matrix, int64_t begin, int64_t end);
  void call(const std::string& op, std::vector<ir::Argument> args, std::vector<ir::ValueId> results,
            std::vector<ir::Node::Write> writes = {});
  /// A call with one new result of the type of `like`.
  ir::ValueId callLike(const std::string& op, std::vector<ir::Argument> args, ir::ValueId like);
  ir::ValueId convert(ir::ValueId value, ir::DType dtype);
  Var result(ir::ValueId value, std::vector<Var> inputs, std::function<void(ir::ValueId)> backward);
  void accumulate(Var target, ir::ValueId gradient, bool owned);
  void accumulateParameter(Var target, ir::ValueId gradient, bool owned);
  ir::ValueId state(const std::string& kind, Var parameter, ir::Role role, ir::DType dtype);
  /// Parameters that have a gradient, with it.
  std::vector<std::pair<Var, ir::ValueId>> trained();
  const ir::TensorType& type(ir::ValueId value) { return builder_.value(value).type; }
  std::string uniqueName(const std::string& base);

  StepOptions options_;
  ir::GraphBuilder builder_;
  std::vector<TapeEntry> tape_;
  std::vector<std::optional<Gradient>> gradients_;  // by Var::index
  std::vector<Var> parameters_;
  std::map<int32_t, ir::ValueId> transposes_;
  std::map<std::string, int> nameUses_;
  std::string path_;
  ir::Phase phase_ = ir::Phase::kForward;
  int varCount_ = 0;
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_STEP_BUILDER_H_
