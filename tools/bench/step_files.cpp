// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/step_files.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Path.h>

#include <algorithm>
#include <utility>

#include "ir/base/affix.h"
#include "ir/text/parser.h"
#include "planner/files/cost_json.h"

namespace stowage::tools {

namespace {

ir::Expected<std::string> readText(const std::string& path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) return ir::makeError(ir::ErrorCode::kIo, "could not read " + path);
  return (*buffer)->getBuffer().str();
}

}  // namespace

std::vector<std::string> listSteps(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (llvm::sys::fs::directory_iterator at(folder, failed), end; at != end && !failed;
       at.increment(failed)) {
    const llvm::StringRef path = at->path();
    if (ir::endsWith(path, ".stow")) names.push_back(llvm::sys::path::stem(path).str());
  }
  std::sort(names.begin(), names.end());
  return names;
}

ir::Expected<ir::Graph> readStep(const std::string& path) {
  ir::Expected<std::string> text = readText(path);
  if (!text) return text.takeError();
  return ir::parseGraph(*text, path);
}

ir::Expected<ir::CostTable> readStepCosts(const std::string& path) {
  ir::Expected<std::string> text = readText(path);
  if (!text) return text.takeError();
  ir::Expected<planner::CostFile> file = planner::readCosts(*text, path);
  if (!file) return file.takeError();
  return std::move(file->table);
}

}  // namespace stowage::tools
