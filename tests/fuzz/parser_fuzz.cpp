// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/parser_fuzz.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "ir/text/parser.h"
#include "ir/text/printer.h"

namespace stowage::tests {

namespace {

std::string print(const ir::Module& module) {
  return module.schedule ? toText(module.graph, *module.schedule) : toText(module.graph);
}

std::string checkRefusal(const ir::PlanError& error) {
  if (error.text().empty()) return "refused without a reason";
  if (error.location().line < 1 || error.location().column < 1) return "refused without a place";
  if (error.code() == ir::ErrorCode::kParse) return "";
  if (error.code() != ir::ErrorCode::kInvalidIr) return "refused with an unexpected code";
  return error.notes().empty() ? "invariants are broken, but no note says which" : "";
}

}  // namespace

ParseOutcome checkParserOn(llvm::StringRef text) {
  ir::Expected<ir::Module> module = ir::parseModule(text, "fuzz");
  if (!module) return {.complaint = checkRefusal(ir::takePayload(module.takeError()))};
  const std::string canonical = print(*module);
  ir::Expected<ir::Module> again = ir::parseModule(canonical, "canonical");
  if (!again) {
    return {.accepted = true,
            .complaint = "canonical text is refused: " + ir::describe(again.takeError())};
  }
  const bool same = print(*again) == canonical;
  return {.accepted = true, .complaint = same ? "" : "canonical text does not read back to itself"};
}

}  // namespace stowage::tests

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const llvm::StringRef text(reinterpret_cast<const char*>(data), size);
  const stowage::tests::ParseOutcome outcome = stowage::tests::checkParserOn(text);
  if (outcome.complaint.empty()) return 0;
  std::fprintf(stderr, "%s\n", outcome.complaint.c_str());
  std::abort();
}
