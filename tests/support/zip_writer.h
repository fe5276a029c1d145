// SPDX-License-Identifier: Apache-2.0
//
// Writes zip archives for tests: as torch.export writes them (stored), deflated, or with 64-bit
// fields. What a reader must refuse is made by changing the bytes afterwards.
#ifndef STOWAGE_TESTS_SUPPORT_ZIP_WRITER_H_
#define STOWAGE_TESTS_SUPPORT_ZIP_WRITER_H_

#include <string>
#include <vector>

namespace stowage::tests {

struct ZipSource {
  std::string name;
  std::string bytes;
  bool deflate = false;
};

std::string writeZip(const std::vector<ZipSource>& sources, bool with64BitFields = false);

/// Writes `bytes` to a file in the test's temporary folder and returns its path.
std::string writeTemporaryFile(const std::string& name, const std::string& bytes);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_ZIP_WRITER_H_
