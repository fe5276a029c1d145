// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/trace/step_diff.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/capture/trace/step_matcher.h"

namespace stowage::runtime {
namespace {

bool isNumber(const ir::Argument& argument) {
  return std::holds_alternative<int64_t>(argument) || std::holds_alternative<double>(argument);
}

HostNumber fromInteger(int64_t integer) {
  return {.isInteger = true, .value = static_cast<double>(integer), .integer = integer};
}
HostNumber fromDouble(double value) { return {.isInteger = false, .value = value, .integer = 0}; }

ir::Error stepChanged(size_t node, const std::string& how) {
  return ir::makeError(ir::ErrorCode::kUnsupported, "the step is not the same each time: op " +
                                                        std::to_string(node) + " " + how);
}

ir::Error compareReports(StepMatcher& matcher, const StepPart& a, const StepPart& b) {
  for (size_t i = 0; i < std::max(a.reports.size(), b.reports.size()); ++i) {
    const bool isSame =
        i < a.reports.size() && i < b.reports.size() && matcher.plays(a.reports[i], b.reports[i]);
    if (isSame) continue;
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         "the step is not the same each time: `loss` returns another tensor (" +
                             a.name + ", " + b.name + ")");
  }
  return ir::success();
}

}  // namespace

bool operator==(const HostNumber& a, const HostNumber& b) {
  return a.isInteger == b.isInteger && a.integer == b.integer &&
         std::bit_cast<uint64_t>(a.value) == std::bit_cast<uint64_t>(b.value);
}

std::vector<ScalarSite> scalarSites(const StepTrace& step) {
  std::vector<ScalarSite> sites;
  for (uint32_t n = 0; n < step.nodes.size(); ++n) {
    const TracedNode& node = step.nodes[n];
    for (uint32_t k = 0; k < node.args.size(); ++k) {
      const ir::Argument& argument = node.args[k];
      if (std::holds_alternative<ir::WrappedNumberArg>(argument)) sites.push_back({n, k, -1});
      if (!numberMayDiffer(node, k)) continue;
      if (isNumber(argument)) sites.push_back({n, k, -1});
      const auto* list = std::get_if<ir::NumberList>(&argument);
      for (int32_t i = 0; list != nullptr && i < static_cast<int32_t>(list->size()); ++i) {
        sites.push_back({n, k, i});
      }
    }
  }
  return sites;
}

HostNumber numberAt(const StepTrace& step, const ScalarSite& site) {
  const ir::Argument& argument = step.nodes[site.node].args[site.argument];
  if (const auto* list = std::get_if<ir::NumberList>(&argument)) {
    const auto& element = (*list)[static_cast<size_t>(site.element)];
    if (const auto* flag = std::get_if<bool>(&element)) return fromInteger(*flag ? 1 : 0);
    if (const auto* integer = std::get_if<int64_t>(&element)) return fromInteger(*integer);
    return fromDouble(std::get<double>(element));
  }
  if (const auto* wrapped = std::get_if<ir::WrappedNumberArg>(&argument)) {
    if (const auto* integer = std::get_if<int64_t>(&wrapped->value)) return fromInteger(*integer);
    return fromDouble(std::get<double>(wrapped->value));
  }
  if (const auto* integer = std::get_if<int64_t>(&argument)) return fromInteger(*integer);
  return fromDouble(std::get<double>(argument));
}

StepPart wholeStep(const StepTrace& step, std::string name) {
  return {.step = step, .name = std::move(name), .begin = 0, .end = step.nodes.size()};
}

ir::Error matchSteps(const StepPart& a, const StepPart& b, const StorageTable& storages,
                     const StoragePairs& known, PartMatch* match) {
  PartMatch own;
  PartMatch& result = match == nullptr ? own : *match;
  StepMatcher matcher(a, b, storages, known);
  const size_t shared = std::min(a.end - a.begin, b.end - b.begin);
  for (size_t i = 0; i < shared; ++i) {
    result.differsFrom = i;
    const std::string how = matcher.differenceBetween(a.begin + i, b.begin + i);
    if (!how.empty()) return stepChanged(a.begin + i, how);
  }
  result.differsFrom = shared;
  if (a.end - a.begin == b.end - b.begin) {
    result.pairs = matcher.pairs();
    return compareReports(matcher, a, b);
  }
  const StepPart& longer = a.end - a.begin > b.end - b.begin ? a : b;
  const StepPart& shorter = &longer == &a ? b : a;
  const size_t first = longer.begin + shared;
  return stepChanged(first, "is " + longer.step.nodes[first].op->name + " in " + longer.name +
                                " and absent in " + shorter.name);
}

}  // namespace stowage::runtime
