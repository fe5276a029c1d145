// SPDX-License-Identifier: Apache-2.0
//
// Small safetensors files, as tests give them to verbs.
#ifndef STOWAGE_TESTS_SUPPORT_TENSOR_FILE_H_
#define STOWAGE_TESTS_SUPPORT_TENSOR_FILE_H_

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/files/safetensors.h"
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

/// A whole file, to be changed.
struct TensorFile {
  std::map<std::string, std::string> metadata;
  std::vector<FileTensor> tensors;

  FileTensor& find(const std::string& name) {
    for (FileTensor& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::runtime_error("no tensor " + name);
  }
};

/// Writes a file again as `edit` leaves it, with right checksums where it had some.
template <typename Edit>
void editTensors(const std::string& path, Edit edit) {
  TensorFile file;
  {
    const runtime::SafetensorsReader reader = orFail(runtime::SafetensorsReader::open(path));
    file.metadata = reader.header().metadata;
    for (const runtime::SafetensorsEntry& entry : reader.header().entries) {
      std::vector<uint8_t> bytes(static_cast<size_t>(entry.bytes.end - entry.bytes.begin));
      orFail(reader.read(entry, bytes));
      file.tensors.push_back({entry.name, *entry.dtype, entry.sizes, std::move(bytes)});
    }
  }
  edit(file);
  runtime::SafetensorsHeader header{{}, file.metadata};
  for (const FileTensor& tensor : file.tensors) {
    header.entries.push_back({tensor.name, "", tensor.dtype, tensor.sizes, {}});
  }
  runtime::SafetensorsWriter writer =
      orFail(runtime::SafetensorsWriter::create(path, std::move(header)));
  for (const FileTensor& tensor : file.tensors) orFail(writer.append(tensor.bytes));
  orFail(writer.commit());
}

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_TENSOR_FILE_H_
