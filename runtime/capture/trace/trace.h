// SPDX-License-Identifier: Apache-2.0
//
// What one step did, as recorded: its ATen calls in order, on tensors known by storage and shape.
// A StorageTable outlives the steps and knows every storage that any of them touched. Node
// arguments are ir::Arguments already, except that a ValueId is a position in `StepTrace::tensors`
// and no argument is a step scalar yet. Invariants: views are tensors, never nodes; equal tensors
// have one position. Not here: which storages persist and what they are for (known_storages.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_TRACE_TRACE_H_
#define STOWAGE_RUNTIME_CAPTURE_TRACE_TRACE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/capture/ops/op_facts.h"

namespace stowage::runtime {

/// A storage's FakeId, or a number above every FakeId for a real one. 0: none.
using StorageKey = uint64_t;

/// What is known of a storage as long as a capture lasts.
struct StorageFacts {
  int64_t bytes = 0;
  bool host = false;        // a CPU tensor of a step for another device
  bool unwritten = false;   // made by `empty`, and no recorded op wrote it yet
  bool handFilled = false;  // made by `empty`, written by host code: its bytes are in `contents`
  bool written = false;     // by an op that was recorded, so a real storage's bytes are old
  bool input = false;       // of the step: other bytes in each
  bool trained = false;     // `update` wrote it as a tensor that requires a gradient
  c10::Storage real;        // real storages are held, so that their identity stays theirs
  c10::VariableVersion version = c10::VariableVersion(c10::VariableVersion::DISABLED);  // of `real`
  at::Tensor contents;  // uint8: a copy of bytes that may not stay (hand-filled, borrowed)

  /// The bytes of a real storage.
  c10::Storage realBytes() const { return contents.defined() ? contents.storage() : real; }
};

class StorageTable {
 public:
  explicit StorageTable(c10::DeviceType device) : device_(device) {}
  /// Key of a tensor's storage; adds it when it is new.
  StorageKey keyOf(const at::Tensor& tensor);
  /// Null when no recorded op touched it.
  const StorageFacts* find(StorageKey key) const;
  StorageFacts& get(StorageKey key);
  bool isReal(StorageKey key) const { return key >= kFirstReal; }
  const std::unordered_map<StorageKey, StorageFacts>& all() const { return facts_; }

  /// A step begins whose inputs are given as `tensors`, which only this step has: a tensor of an
  /// earlier step, which its code has kept, is no input of this one.
  void setInputs(const std::vector<std::pair<at::Tensor, StorageKey>>& tensors);

  /// A step traced for its numbers begins: what it adds can be forgotten.
  void beginTransient() {
    if (!transient_) transient_ = std::move(keptTransient_);
  }
  /// Forgets the storages added since then, but for those that `keeps` says yes to: until the next
  /// such step is over.
  void endTransient(llvm::function_ref<bool(StorageKey)> keeps);

 private:
  static constexpr StorageKey kFirstReal = StorageKey{1} << 62;
  StorageKey keyOfReal(const at::Tensor& tensor);

  c10::DeviceType device_;
  std::unordered_map<StorageKey, StorageFacts> facts_;
  std::unordered_map<FakeId, StorageKey> inputs_;  // of this step
  std::unordered_map<const c10::StorageImpl*, StorageKey> realKeys_;
  StorageKey nextReal_ = kFirstReal;
  std::optional<std::vector<StorageKey>> transient_;
  std::vector<StorageKey> keptTransient_;
};

struct TracedTensor {
  StorageKey storage = 0;
  ir::TensorType type;
  friend bool operator==(const TracedTensor&, const TracedTensor&) = default;
};

struct TracedNode {
  const OpFacts* op = nullptr;
  std::vector<ir::Argument> args;
  llvm::SmallVector<ir::ValueId, 2> results;
  llvm::SmallVector<ir::Node::Write, 1> writes;
  ir::Phase phase = ir::Phase::kForward;
  uint64_t sequence = 0;       // autograd's number of the forward op; 0: none
  StorageKey accumulates = 0;  // in an AccumulateGrad: the parameter
};

/// A value that host code read with item().
struct ReadBack {
  ir::ValueId tensor;
  size_t before = 0;  // number of nodes recorded by then
  std::string place;  // "near h.3.attn, forward"

  /// In steps that are alike.
  bool isSameAs(const ReadBack& other) const {
    return tensor == other.tensor && before == other.before;
  }
};

/// The tensors of one step, each once.
class TracedTensors {
 public:
  ir::ValueId intern(TracedTensor tensor);
  const TracedTensor& operator[](ir::ValueId id) const { return tensors_[id.index()]; }
  size_t size() const { return tensors_.size(); }
  void clear();

 private:
  std::vector<TracedTensor> tensors_;
  std::unordered_multimap<uint64_t, int32_t> byHash_;
};

struct StepTrace {
  TracedTensors tensors;
  std::vector<TracedNode> nodes;
  std::vector<ReadBack> readBacks;
  FakeId firstId = 0;      // storages made by this step have ids from here on
  size_t updateBegin = 0;  // nodes before belong to `loss`

  /// Empty again; the room it took is kept.
  void clear();
  /// What is written in place by node `begin` or a later one.
  std::unordered_set<StorageKey> writtenFrom(size_t begin) const;
};

/// uint8 [n]. Throws for more than host code may hold inside a step (64 MiB).
at::Tensor copyOfBytes(const c10::Storage& storage);

/// The type of a tensor in the IR. The tensor's dtype must have a name there.
ir::TensorType irType(const TensorShape& shape);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_TRACE_TRACE_H_
