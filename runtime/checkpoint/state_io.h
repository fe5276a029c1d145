// SPDX-License-Identifier: Apache-2.0
//
// A step's state in safetensors files: each persistent storage under its name, with the dtype and
// shape of the tensor that it is. Storages that are no one dense tensor are kept as plain bytes
// (U8). Tensors that are dense in another order than the format's (channels last) are turned into
// the format's order in the file and back.
// A shard stands there as the tensor that all ranks' shards are, so files are the same for any
// number of ranks.
// Loading finds everything that does not fit before anything is changed, and says all of it.
#ifndef STOWAGE_RUNTIME_CHECKPOINT_STATE_IO_H_
#define STOWAGE_RUNTIME_CHECKPOINT_STATE_IO_H_

#include <llvm/ADT/ArrayRef.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "runtime/executor/executor.h"
#include "runtime/files/safetensors.h"

namespace stowage::runtime {

/// What stands in files for a storage.
struct StateTensor {
  ir::DType dtype = ir::DType::kU8;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};
StateTensor describeState(const ir::Graph& graph, ir::StorageId storage);

struct StateFileOptions {
  /// Storages that must come from the files; others are left to the caller. Default: all persistent
  /// ones.
  std::function<bool(const ir::Storage&)> wants;
  /// Name in the files by name of storage, where they differ.
  std::map<std::string, std::string> names;
  bool allowExtra = false;      // tensors in the files that nothing wants
  std::set<std::string> known;  // tensors in the files that are no storages and no surprise
};

/// One or more files whose tensors make up a state.
class StateFiles {
 public:
  /// Errors: kIo, kParse with the file; kPlanMismatch when two files have the same tensor.
  static ir::Expected<StateFiles> open(llvm::ArrayRef<std::string> paths);
  /// Does everything wanted fit? Errors: kPlanMismatch with a note per missing, extra or other
  /// tensor.
  ir::Error check(const ir::Graph& graph, const StateFileOptions& options) const;
  /// The storage's bytes as the step wants them; of a shard, the whole tensor's. Errors: kIo.
  ir::Error read(const ir::Graph& graph, ir::StorageId storage, const StateFileOptions& options,
                 llvm::MutableArrayRef<uint8_t> bytes) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Of all files' metadata, in order.
  uint64_t digest() const;
  /// All tensors', ascending.
  std::vector<std::string> names() const;
  /// For what is no storage (the generator's state). Null if there is none.
  const SafetensorsEntry* find(const std::string& name) const;
  ir::Error readEntry(const SafetensorsEntry& entry, llvm::MutableArrayRef<uint8_t> bytes) const;

 private:
  const SafetensorsReader* owner(const std::string& name) const;

  std::vector<SafetensorsReader> files_;
  std::map<std::string, size_t> fileOf_;  // by tensor
  std::map<std::string, std::string> metadata_;
};

/// A tensor that belongs to a saved state and is no storage.
struct ExtraState {
  std::string name;
  std::vector<uint8_t> bytes;
  ir::DType dtype = ir::DType::kU8;
  std::optional<std::vector<int64_t>> sizes;  // default: one dimension
};

/// One file of state while it is written.
struct StateFileLayout {
  std::string path;
  std::vector<ir::StorageId> storages;       // ascending
  std::map<std::string, std::string> names;  // by name of storage, where they differ
  std::map<std::string, std::string> metadata;
  std::vector<ExtraState> extra;
};

class StateFileWriter {
 public:
  /// `graph` outlives the writer. Errors: kIo.
  static ir::Expected<StateFileWriter> create(const ir::Graph& graph, StateFileLayout layout);
  bool holds(ir::StorageId storage) const;
  /// The layout's storages, in its order; for a shard, the whole tensor's bytes.
  ir::Error append(ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes);
  /// Other bytes, as many, for a tensor of the layout's `extra`.
  void putExtra(const std::string& name, std::vector<uint8_t> bytes);
  /// Whole, under its name, on disk.
  ir::Error commit();

 private:
  StateFileWriter(const ir::Graph& graph, StateFileLayout layout, SafetensorsWriter file);
  const ir::Graph* graph_;
  StateFileLayout layout_;
  SafetensorsWriter file_;
};

/// Persistent storages that have a place between steps, ascending.
std::vector<ir::StorageId> findSavedStorages(const PlanSource& source);

/// Waits for the last step and writes all persistent storages. Errors: kIo.
ir::Error saveState(Executor& executor, const std::string& path,
                    const std::map<std::string, std::string>& metadata,
                    llvm::ArrayRef<ExtraState> extra = {});

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CHECKPOINT_STATE_IO_H_
