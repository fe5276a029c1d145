// SPDX-License-Identifier: Apache-2.0
//
// Reads a zip archive as torch.export writes it, which may be damaged or hostile: entries stored as
// they are, with 64-bit fields where sizes need them. A path -> the entries, whose bytes are part
// of the mapped file. Invariants of an opened archive: every entry lies inside the file, its own
// header and the directory name it alike, and every name is there once. `read` hands out bytes only
// when their checksum is the stated one (libtorch's own reader does not look at it). Not here:
// compressed, encrypted and split archives, which torch.export does not write.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_ZIP_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_ZIP_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/base/error.h"

namespace stowage::runtime {

struct ZipEntry {
  llvm::StringRef name;
  llvm::StringRef bytes;
  uint32_t checksum = 0;  // CRC-32 as stated
};

class ZipArchive {
 public:
  /// Errors: kIo when the file cannot be read, kParse for everything that is not as above. Both
  /// name the file.
  static ir::Expected<ZipArchive> open(const std::string& path);

  llvm::ArrayRef<ZipEntry> entries() const { return entries_; }
  /// The bytes of an entry. Errors: kParse when there is no such entry, or for a wrong checksum.
  ir::Expected<llvm::StringRef> read(llvm::StringRef name) const;

 private:
  std::string path_;
  std::unique_ptr<llvm::MemoryBuffer> file_;
  std::vector<ZipEntry> entries_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_ZIP_H_
