// SPDX-License-Identifier: Apache-2.0
//
// The one way to open a file that somebody names as an input. Regular files alone: opening or
// reading a pipe, a terminal or a device may wait for ever, and its bytes may never end; neither
// happens here. A link is followed. Files that are read whole have a largest size, so that the
// memory they take is bounded; archives of weights are mapped instead.
// Errors: kIo, with the file as place, what was found and what was expected.
#ifndef STOWAGE_RUNTIME_FILES_INPUT_FILE_H_
#define STOWAGE_RUNTIME_FILES_INPUT_FILE_H_

#include <llvm/Support/MemoryBuffer.h>

#include <cstdint>
#include <memory>
#include <string>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "runtime/files/file_handle.h"

namespace stowage::runtime {

/// Steps, plans and costs: twenty times the largest that Stowage has written.
inline constexpr Bytes kLargestText{int64_t{1} << 30};

ir::Expected<FileHandle> openInput(const std::string& path);
/// The whole file, which has `most` bytes or fewer.
ir::Expected<std::string> readInput(const std::string& path, Bytes most = kLargestText);
/// What an open descriptor gives until its end, as `name` in messages; waits for a pipe's writer.
ir::Expected<std::string> readDescriptor(int descriptor, const std::string& name, Bytes most);
/// The file's bytes, in memory as they are touched.
ir::Expected<std::unique_ptr<llvm::MemoryBuffer>> mapInput(const std::string& path);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FILES_INPUT_FILE_H_
