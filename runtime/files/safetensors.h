// SPDX-License-Identifier: Apache-2.0
//
// Safetensors files, read piece by piece and written whole or not at all: a file is written under
// another name, brought to disk, and renamed, so that a process killed at any point leaves the old
// file or the new one.
#ifndef STOWAGE_RUNTIME_FILES_SAFETENSORS_H_
#define STOWAGE_RUNTIME_FILES_SAFETENSORS_H_

#include <llvm/ADT/ArrayRef.h>

#include <string>

#include "ir/base/error.h"
#include "runtime/files/file_handle.h"
#include "runtime/files/safetensors_header.h"

namespace stowage::runtime {

/// Metadata under this name asks the writer for checksums: xxHash64 of the header (with zeros in
/// the checksums' place) and of each tensor in order of their bytes, 16 digits each. The reader
/// checks them wherever they are there.
inline constexpr const char* kChecksumKey = "stowage.xxh64";

class SafetensorsReader {
 public:
  /// Errors: kIo, kParse, with the file.
  static ir::Expected<SafetensorsReader> open(const std::string& path);
  const SafetensorsHeader& header() const { return header_; }
  const std::string& path() const { return path_; }
  /// Null if there is none.
  const SafetensorsEntry* find(llvm::StringRef name) const;
  /// `bytes` has the entry's size.
  ir::Error read(const SafetensorsEntry& entry, llvm::MutableArrayRef<uint8_t> bytes) const;
  /// `bytes` of the entry's, from `offset` on.
  ir::Error readPart(const SafetensorsEntry& entry, int64_t offset,
                     llvm::MutableArrayRef<uint8_t> bytes) const;

 private:
  SafetensorsReader(std::string path, FileHandle file, SafetensorsHeader header, int64_t dataBegin);

  std::string path_;
  FileHandle file_;
  SafetensorsHeader header_;
  int64_t dataBegin_ = 0;
  std::map<std::string, size_t, std::less<>> byName_;
};

class SafetensorsWriter {
 public:
  /// Entries need name, dtype and sizes; their bytes follow in this order. Errors: kIo with the
  /// file.
  static ir::Expected<SafetensorsWriter> create(const std::string& path, SafetensorsHeader header);
  SafetensorsWriter(SafetensorsWriter&& other) noexcept = default;
  /// Without commit, what was written goes away.
  ~SafetensorsWriter();
  /// The bytes of the next entry.
  ir::Error append(llvm::ArrayRef<uint8_t> bytes);
  /// The file is there, under its name, on disk.
  ir::Error commit();

 private:
  SafetensorsWriter(std::string path, std::string temporary, FileHandle file,
                    SafetensorsHeader header);

  std::string path_;
  std::string temporary_;
  FileHandle file_;
  SafetensorsHeader header_;
  size_t next_ = 0;
  std::string checksums_;     // so far
  int64_t checksumsAt_ = -1;  // in the file; -1: none are asked for
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FILES_SAFETENSORS_H_
