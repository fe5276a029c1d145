// SPDX-License-Identifier: Apache-2.0
//
// Reads foreign bytes as a plan and as a cost table: an error with a place, or something that can
// be written again and read back.

#include <llvm/Support/raw_ostream.h>

#include <cstdlib>
#include <string>

#include "planner/files/cost_json.h"
#include "planner/files/plan_json.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

template <typename File>
std::string write(const File& file, stowage::ir::Error (*writer)(const File&, llvm::raw_ostream&)) {
  std::string text;
  llvm::raw_string_ostream os(text);
  require(stowage::ir::describe(writer(file, os)).empty());
  return os.str();
}

/// The file in front, and never that the schema is against it without saying in what.
void requirePlace(stowage::ir::Error error) {
  const std::string text = stowage::ir::describe(std::move(error));
  require(text.rfind("file:", 0) == 0);
  require(text.find("what the schema allows") == std::string::npos);
}

void tryPlan(llvm::StringRef text) {
  using stowage::planner::readPlan;
  auto plan = readPlan(text, "file");
  if (!plan) return requirePlace(plan.takeError());
  const std::string written = write(*plan, stowage::planner::writePlan);
  auto again = readPlan(written, "file");
  require(static_cast<bool>(again));
  require(write(*again, stowage::planner::writePlan) == written);
}

void tryCosts(llvm::StringRef text) {
  auto costs = stowage::planner::readCosts(text, "file");
  if (!costs) return requirePlace(costs.takeError());
  write(*costs, stowage::planner::writeCosts);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const llvm::StringRef text(reinterpret_cast<const char*>(data), size);
  tryPlan(text);
  tryCosts(text);
  return 0;
}
