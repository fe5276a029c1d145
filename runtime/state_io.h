// SPDX-License-Identifier: Apache-2.0
//
// A step's state in safetensors files: each persistent storage under its name, with the dtype and
// shape of the tensor that it is. Storages that are no one dense tensor are kept as plain bytes
// (U8). Tensors that are dense in another order than the format's (channels last) are turned into
// the format's order in the file and back.
// Loading finds everything that does not fit before anything is changed, and says all of it.
#ifndef STOWAGE_RUNTIME_STATE_IO_H_
#define STOWAGE_RUNTIME_STATE_IO_H_

#include <llvm/ADT/ArrayRef.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/graph.h"
#include "runtime/executor.h"
#include "runtime/safetensors.h"

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
  bool allowExtra = false;  // tensors in the files that nothing wants
};

/// One or more files whose tensors make up a state.
class StateFiles {
 public:
  /// Errors: kIo, kParse with the file; kInvalidArgument when two files have the same tensor.
  static ir::Expected<StateFiles> open(llvm::ArrayRef<std::string> paths);
  /// Does everything wanted fit? Errors: kInvalidArgument with a note per missing, extra or other
  /// tensor.
  ir::Error check(const ir::Graph& graph, const StateFileOptions& options) const;
  /// The storage's bytes as the step wants them. Errors: kIo.
  ir::Error read(const ir::Graph& graph, ir::StorageId storage, const StateFileOptions& options,
                 llvm::MutableArrayRef<uint8_t> bytes) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// For what is no storage (the generator's state). Null if there is none.
  const SafetensorsEntry* find(const std::string& name) const;
  ir::Error readEntry(const SafetensorsEntry& entry, llvm::MutableArrayRef<uint8_t> bytes) const;

 private:
  const SafetensorsReader* owner(const std::string& name) const;

  std::vector<SafetensorsReader> files_;
  std::map<std::string, size_t> fileOf_;  // by tensor
  std::map<std::string, std::string> metadata_;
};

/// Bytes that belong to a saved state and are no storage.
struct ExtraState {
  std::string name;
  std::vector<uint8_t> bytes;
};

/// Waits for the last step and writes all persistent storages. Errors: kIo.
ir::Error saveState(Executor& executor, const std::string& path,
                    const std::map<std::string, std::string>& metadata,
                    llvm::ArrayRef<ExtraState> extra = {});

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_STATE_IO_H_
