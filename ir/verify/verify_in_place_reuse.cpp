// SPDX-License-Identifier: Apache-2.0
//
// V21: result 0 may lie on an operand's bytes only if the op table says so of that operand, both
// have one type (dtype, sizes, dense strides, offset) and one address, every other argument that
// views those bytes has that type too, and the operand's storage dies with the step. That its last
// use is this very command is a matter of order: verify_sharing.cpp.
#include <algorithm>

#include "ir/verify/verify_internal.h"

namespace stowage::ir::verifier {

namespace {

/// Every byte between first and last element belongs to exactly one element.
bool isDense(const TensorType& type) {
  llvm::SmallVector<std::pair<int64_t, int64_t>, 4> dims;  // stride, size
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    if (type.sizes[i] != 1) dims.push_back({type.strides[i], type.sizes[i]});
  }
  std::sort(dims.begin(), dims.end());
  int64_t expected = 1;
  for (const auto& [stride, size] : dims) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

class InPlaceReuseCheck {
 public:
  InPlaceReuseCheck(const Facts& facts, CommandId id, Report& report)
      : facts_(facts), id_(id), run_(facts.schedule.command(id)), report_(report) {}

  void run() {
    const ResidencyId result = facts_.freshResult(id_);
    if (!result.isValid()) {
      violate("has no fresh result 0 to lie there");
      return;
    }
    checkOperand();
    checkPlace(result);
    checkTypes();
  }

 private:
  void violate(const std::string& why) {
    report_.add(21, id_,
                facts_.describe(id_) + " reuses " + facts_.describe(run_.takes) + ", but " + why);
  }

  const TensorType& type(ValueId id) const { return facts_.graph.value(id).type; }
  StorageId taken() const { return facts_.schedule.residency(run_.takes).storage; }

  void checkOperand() {
    bool reads = false;
    for (const Use& use : facts_.usesOf(id_)) {
      if (use.residency != run_.takes) continue;
      reads = use.reads;
      if (use.writes) violate("writes it too");
    }
    if (!reads) violate("does not read it");
    if (facts_.storage(run_.takes).persistent) violate("its storage is persistent");
    if (facts_.isHeld(run_.takes)) violate("it is held between the steps");
  }

  void checkPlace(ResidencyId result) {
    if (!facts_.isAtLeast(Level::kPlaced)) return;
    const Residency& from = facts_.schedule.residency(run_.takes);
    const Residency& to = facts_.schedule.residency(result);
    if (from.space == to.space && from.offset == to.offset) return;
    violate("result 0 lies at " + std::to_string(to.offset) + ", expected " +
            std::to_string(from.offset));
  }

  void checkTypes() {
    const Node& node = facts_.node(run_);
    const OpInfo& own = facts_.op(run_.node);
    const bool inReplayForm = run_.recompute > 0 && *own.replayForm != '\0';
    const OpInfo& op = inReplayForm ? lookUpOp(own.replayForm) : own;
    const TensorType& result = type(node.results[0]);
    if (!isOperand(node, op.inPlaceOperand) && !isOperand(node, op.inPlaceOperand2)) {
      violate("the op may not land on that operand");
    }
    if (!isDense(result)) violate("result 0 is not dense");
    forEachTensorArgument(node, [&](ValueId value) {
      if (facts_.graph.value(value).storage != taken() || type(value) == result) return;
      violate("argument %" + facts_.graph.value(value).name + " looks different from result 0");
    });
  }

  /// True if schema argument `index` is a tensor on the taken storage.
  bool isOperand(const Node& node, int index) const {
    if (index < 0 || static_cast<size_t>(index) >= node.args.size()) return false;
    const auto* value = std::get_if<ValueArg>(&node.args[static_cast<size_t>(index)]);
    return value != nullptr && value->value.isValid() &&
           facts_.graph.value(value->value).storage == taken();
  }

  const Facts& facts_;
  const CommandId id_;
  const Command& run_;
  Report& report_;
};

}  // namespace

void checkInPlaceReuse(const Facts& facts, Report& report) {
  for (size_t i = 0; i < facts.schedule.commands.size(); ++i) {
    const Command& command = facts.schedule.commands[i];
    if (command.takes.isValid()) InPlaceReuseCheck(facts, CommandId(i), report).run();
  }
}

}  // namespace stowage::ir::verifier
