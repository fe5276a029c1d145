// SPDX-License-Identifier: Apache-2.0
//
// Reads entries of a zip archive that may be damaged or hostile. A path -> the archive's entries,
// whose bytes are read one at a time.
// Invariants of an opened archive: every entry lies inside the file, in front of the directory and
// apart from all others; its own header and the directory agree; names are plain relative paths,
// each once; nothing is encrypted or in several parts. Bytes are handed out only when their length
// and checksum are as stated, and no entry can ask for more memory than a bounded multiple of the
// bytes that it has in the file.
// Reads what torch.export writes: stored and deflated entries, with or without the 64-bit fields.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_ZIP_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_ZIP_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/error.h"

namespace stowage::runtime {

struct ZipEntry {
  std::string name;
  int64_t dataOffset = 0;   // of its bytes in the file
  int64_t storedBytes = 0;  // in the file
  int64_t bytes = 0;        // after inflating; equal to storedBytes when not deflated
  uint32_t checksum = 0;    // CRC-32 of the inflated bytes
  bool deflated = false;
};

class ZipReader {
 public:
  /// Errors: kIo when the file cannot be read, kParse for everything that is not as above. Both
  /// name the file.
  static ir::Expected<ZipReader> open(const std::string& path);

  ZipReader(ZipReader&&) noexcept;
  ZipReader& operator=(ZipReader&&) noexcept;
  ~ZipReader();

  /// In order of their place in the file.
  llvm::ArrayRef<ZipEntry> entries() const { return entries_; }
  /// Null when there is none of that name.
  const ZipEntry* findEntry(llvm::StringRef name) const;
  /// The entry's bytes, inflated. Errors: kParse for more than `maxBytes`, a wrong length or a
  /// wrong checksum; kIo.
  ir::Expected<std::string> read(const ZipEntry& entry, int64_t maxBytes) const;

 private:
  class File;
  ZipReader(std::unique_ptr<File> file, std::vector<ZipEntry> entries);

  std::unique_ptr<File> file_;
  std::vector<ZipEntry> entries_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_ZIP_H_
