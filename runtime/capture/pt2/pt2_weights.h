// SPDX-License-Identifier: Apache-2.0
//
// The tensors that a torch.export archive holds: parameters and buffers (data/weights) and
// constants (data/constants), by qualified name, as raw bytes of their storages. A path -> what is
// inside, each read and checked when it is asked for. An archive of a step that takes everything as
// an argument holds none. Not here: tensors kept as pickles, which are refused; the program.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_WEIGHTS_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_WEIGHTS_H_

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/type.h"

namespace stowage::runtime {

class ZipArchive;

class ArchiveWeights {
 public:
  /// Errors: kIo, kParse, kUnsupported, with the file as place.
  static ir::Expected<ArchiveWeights> open(const std::string& path);
  ArchiveWeights(ArchiveWeights&&) noexcept;
  ArchiveWeights& operator=(ArchiveWeights&&) noexcept;
  ~ArchiveWeights();

  size_t size() const { return tensors_.size(); }
  bool holds(const std::string& name) const { return tensors_.count(name) != 0; }
  /// The bytes of the tensor, from its first element on; it must be of `type`. Valid while this
  /// lives. Errors: kParse, kPlanMismatch, kUnsupported, with the file as place.
  ir::Expected<llvm::StringRef> read(const std::string& name, const ir::TensorType& type) const;

 private:
  struct Entry {
    std::string file;  // in the archive
    bool pickled = false;
    ir::TensorType type;
  };
  ArchiveWeights(std::string path, std::unique_ptr<ZipArchive> archive);
  ir::Error readIndexes();
  ir::Error readIndex(llvm::StringRef entry);
  ir::Error bad(ir::ErrorCode code, const std::string& what) const;

  std::string path_;
  std::unique_ptr<ZipArchive> archive_;
  std::map<std::string, Entry> tensors_;
};

/// "xxh64:0123456789abcdef" of the whole file. Errors: kIo.
ir::Expected<std::string> archiveFingerprint(const std::string& path);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_WEIGHTS_H_
