// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/random_graph.h"

namespace stowage::tests {

using ir::Node;
using ir::Role;
using ir::ValueArg;
using ir::ValueId;
using ir::ValueList;

namespace {

class TinyMaker {
 public:
  TinyMaker(uint64_t seed, const TinyGraphOptions& options)
      : random_(seed ^ 0x717), options_(options), builder_("tiny" + std::to_string(seed)) {}

  ir::Graph make() {
    for (int i = 0; i < 3; ++i) sizes_.push_back(random_.uneven(1, options_.maxBytes / 4));
    declarePersistent();
    const int64_t inputs = random_.between(readable_.empty() ? 1 : 0, 2);
    for (int64_t i = 0; i < inputs; ++i) {
      readable_.push_back(add({.name = "x" + std::to_string(i), .role = Role::kInput}));
    }
    const int64_t count = random_.between(2, options_.maxNodes);
    for (int64_t i = 0; i < count; ++i) {
      phase_ = static_cast<ir::Phase>(3 * i / count);
      addNode();
    }
    deliverLast();
    return std::move(builder_).finish();
  }

 private:
  ValueId add(ir::Storage storage) {
    ir::TensorType type{.sizes = {random_.pick(sizes_)}, .strides = {1}};
    storage.bytes = type.extentBytes();
    const std::string name = storage.name;
    const ir::StorageId id = builder_.addStorage(std::move(storage));
    return builder_.addValue({.name = name, .storage = id, .type = std::move(type)});
  }

  void declarePersistent() {
    const int64_t count = random_.between(0, options_.maxPersistent);
    for (int64_t i = 0; i < count; ++i) {
      const Role role = random_.pick(std::vector<Role>{
          Role::kParameter, Role::kParameter, Role::kFrozen, Role::kState, Role::kGradient});
      const ValueId value =
          add({.name = "p" + std::to_string(i), .role = role, .persistent = true});
      readable_.push_back(value);
      if (role != Role::kFrozen) writable_.push_back(value);
    }
  }

  ValueId fresh() {
    const ValueId value = add({.name = "h" + std::to_string(made_.size())});
    made_.push_back(value);
    return value;
  }

  void call(const char* op, std::vector<ir::Argument> args, std::vector<ValueId> results,
            std::vector<Node::Write> writes = {}) {
    builder_.addNode({.op = op,
                      .args = std::move(args),
                      .results = {results.begin(), results.end()},
                      .writes = {writes.begin(), writes.end()},
                      .phase = phase_});
    for (const ValueId result : results) makeUsable(result);
  }

  void makeUsable(ValueId value) {
    if (std::find(readable_.begin(), readable_.end(), value) != readable_.end()) return;
    readable_.push_back(value);
    writable_.push_back(value);
  }

  void addNode() {
    const ValueArg x{random_.pick(readable_)};
    const ValueArg y{random_.pick(readable_)};
    switch (random_.between(0, 11)) {
      case 0:
        return call("aten.native_dropout.default", {x, 0.5, true}, {fresh(), fresh()});
      case 1:
        return call("aten.max.dim", {x, int64_t{0}, false}, {fresh(), fresh()});
      case 2:
        return call("aten.cumsum.default", {x, int64_t{0}, ir::NoneArg{}}, {fresh()});
      case 3:
      case 4:
        if (!writable_.empty()) return writeInPlace(x);
        [[fallthrough]];
      case 5:
        if (!writable_.empty()) return overwrite(x);
        [[fallthrough]];
      case 6:
      case 7:
        return call("aten.add.Tensor", {x, y, int64_t{1}}, {fresh()});
      case 8:
        return call("aten.relu.default", {x}, {fresh()});
      default:
        return call("aten.cat.default", {ValueList{x, y, {random_.pick(readable_)}}, int64_t{0}},
                    {fresh()});
    }
  }

  void writeInPlace(ValueArg x) {
    const ValueId target = random_.pick(writable_);
    call("aten.add_.Tensor", {ValueArg{target}, x, int64_t{1}}, {target}, {{.value = target}});
  }

  void overwrite(ValueArg x) {
    const ValueId target = random_.pick(writable_);
    if (target == x.value) return writeInPlace(x);
    call("aten.copy_.default", {ValueArg{target}, x, false}, {target},
         {{.value = target, .whole = true}});
  }

  void deliverLast() {
    if (made_.empty() || !random_.chance(70)) return;
    ir::Storage& last = builder_.storage(builder_.value(made_.back()).storage);
    last.role = Role::kOutput;
    last.output = true;
  }

  Random random_;
  TinyGraphOptions options_;
  ir::GraphBuilder builder_;
  ir::Phase phase_ = ir::Phase::kForward;
  std::vector<int64_t> sizes_;
  std::vector<ValueId> readable_, writable_, made_;
};

}  // namespace

ir::Graph makeTinyGraph(uint64_t seed, const TinyGraphOptions& options) {
  return TinyMaker(seed, options).make();
}

}  // namespace stowage::tests
