// SPDX-License-Identifier: Apache-2.0
#ifndef STOWAGE_RUNTIME_FILES_FILE_HANDLE_H_
#define STOWAGE_RUNTIME_FILES_FILE_HANDLE_H_

#include <unistd.h>

#include <utility>

namespace stowage::runtime {

/// An open file descriptor with an owner.
class FileHandle {
 public:
  explicit FileHandle(int descriptor = -1) : descriptor_(descriptor) {}
  FileHandle(FileHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileHandle() { close(); }
  int get() const { return descriptor_; }
  bool isOpen() const { return descriptor_ >= 0; }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FILES_FILE_HANDLE_H_
