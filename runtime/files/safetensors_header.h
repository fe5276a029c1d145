// SPDX-License-Identifier: Apache-2.0
//
// The header of a safetensors file: names, types, shapes and places of tensors, as a small and
// strict subset of JSON that is read and written here (the format: eight bytes of length, little
// endian; the header; the tensors' bytes). Input may be hostile: nothing is believed before it is
// checked, recursion is impossible, sizes are checked for overflow.
#ifndef STOWAGE_RUNTIME_FILES_SAFETENSORS_HEADER_H_
#define STOWAGE_RUNTIME_FILES_SAFETENSORS_HEADER_H_

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/interval.h"
#include "ir/graph/type.h"

namespace stowage::runtime {

/// Longest header that is read: the format's own limit.
inline constexpr int64_t kLongestSafetensorsHeader = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  std::string dtypeText;           // as in the file: "F32"
  std::optional<ir::DType> dtype;  // nothing for types that we do not have
  std::vector<int64_t> sizes;
  ir::ByteRange bytes;  // from the end of the header
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in order of their bytes
  std::map<std::string, std::string> metadata;
};

/// `dataBytes`: what follows the header in the file. Checks that the entries cover it exactly, as
/// the format asks, and that shapes fit bytes. Errors: kParse with the byte in the header.
ir::Expected<SafetensorsHeader> parseSafetensorsHeader(llvm::StringRef text, int64_t dataBytes);

/// The header's text with its places filled in, padded so that the bytes behind the length and the
/// text are a multiple of 8. Entries must have types that we have; `bytes` is set here, one after
/// the other in the order given.
std::string layOutSafetensorsHeader(SafetensorsHeader& header);

/// "F32" for kF32; nothing for types that the format does not have.
std::optional<std::string> safetensorsTypeName(ir::DType dtype);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FILES_SAFETENSORS_HEADER_H_
