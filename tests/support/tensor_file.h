// SPDX-License-Identifier: Apache-2.0
//
// Small safetensors files, as tests give them to verbs.
#ifndef STOWAGE_TESTS_SUPPORT_TENSOR_FILE_H_
#define STOWAGE_TESTS_SUPPORT_TENSOR_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/safetensors.h"
#include "tests/support/or_fail.h"

namespace stowage::tests {

struct FileTensor {
  std::string name;
  ir::DType dtype;
  std::vector<int64_t> sizes;
  std::vector<uint8_t> bytes;
};

template <typename T>
std::vector<uint8_t> bytesOf(const std::vector<T>& values) {
  const auto* begin = reinterpret_cast<const uint8_t*>(values.data());
  return {begin, begin + values.size() * sizeof(T)};
}

/// Writes the file and gives its path back.
inline std::string writeTensors(const std::string& path, const std::vector<FileTensor>& tensors) {
  runtime::SafetensorsHeader header;
  for (const FileTensor& tensor : tensors) {
    header.entries.push_back({tensor.name, "", tensor.dtype, tensor.sizes, {}});
  }
  runtime::SafetensorsWriter writer =
      orFail(runtime::SafetensorsWriter::create(path, std::move(header)));
  for (const FileTensor& tensor : tensors) orFail(writer.append(tensor.bytes));
  orFail(writer.commit());
  return path;
}

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_TENSOR_FILE_H_
