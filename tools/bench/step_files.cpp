// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/step_files.h"

#include <llvm/Support/MemoryBuffer.h>

#include <utility>

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
