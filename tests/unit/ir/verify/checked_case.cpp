// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/verify/checked_case.h"

#include <gtest/gtest.h>

#include <set>

#include "ir/graph/op_table.h"
#include "ir/schedule/fingerprint.h"

namespace stowage::tests {

CheckedCase read(std::string text, const Patches& patches) {
  for (const Patch& patch : patches) {
    const size_t at = text.find(patch.from);
    EXPECT_NE(at, std::string::npos) << "no '" << patch.from << "' in the case";
    if (at == std::string::npos) continue;
    EXPECT_EQ(text.find(patch.from, at + 1), std::string::npos) << "'" << patch.from << "' twice";
    text.replace(at, patch.from.size(), patch.to);
  }
  auto module = ir::parseModule(text);
  if (!module) {
    ADD_FAILURE() << ir::describe(module.takeError()) << text;
    return {};
  }
  CheckedCase checked{.module = std::move(*module)};
  checked.target.alignBytes = 64;
  checked.target.reserved = {{.what = "workspace", .bytes = Bytes(64)}};
  ir::Schedule& schedule = *checked.module.schedule;
  if (schedule.graphFingerprint.empty()) {
    schedule.graphFingerprint = ir::fingerprint(checked.module.graph);
  }
  if (schedule.targetFingerprint.empty()) {
    schedule.targetFingerprint = ir::fingerprint(checked.target);
  }
  if (schedule.opTableVersion == 0) schedule.opTableVersion = ir::opTableVersion();
  checked.costs.nodes.assign(checked.module.graph.nodes().size(), {.work = Nanoseconds(10)});
  const BytesPerSecond fast(int64_t{1} << 40);
  checked.costs.links = {
      .deviceToHost = {fast}, .hostToDevice = {fast}, .diskRead = {fast}, .diskWrite = {fast}};
  checked.budget = schedule.arenaBytes(ir::Space::kDevice);
  return checked;
}

std::string rulesOf(const ir::VerifyInput& input) {
  std::set<int> rules;
  std::string messages;
  for (const ir::Violation& violation : ir::verify(input)) {
    rules.insert(violation.rule);
    messages += "\n  V" + std::to_string(violation.rule) + ": " + violation.message;
  }
  std::string text;
  for (const int rule : rules) text += (text.empty() ? "V" : " V") + std::to_string(rule);
  if (rules.size() > 1) text += messages;
  return text;
}

std::string rulesOf(const char* text, const Patches& patches) {
  return rulesOf(read(text, patches).input());
}

}  // namespace stowage::tests
