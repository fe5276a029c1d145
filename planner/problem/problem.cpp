// SPDX-License-Identifier: Apache-2.0
#include "planner/problem/problem.h"

#include <algorithm>
#include <set>

namespace stowage::planner {

namespace {

ir::Error checkLinks(const ir::LinkModel& links) {
  for (const ir::LinkRate& rate : {links.deviceToHost, links.hostToDevice}) {
    if (rate.bandwidth <= BytesPerSecond(0) || rate.latency < Nanoseconds(0)) {
      return ir::makeError(ir::ErrorCode::kInvalidArgument,
                           "found a link with bandwidth " + std::to_string(rate.bandwidth.value()) +
                               " B/s and latency " + std::to_string(rate.latency.value()) +
                               " ns, expected a positive bandwidth and no negative latency");
    }
  }
  return ir::success();
}

ir::Error checkNodeCosts(const ir::Graph& graph, const ir::NodeCosts& costs) {
  for (size_t i = 0; i < costs.nodes.size(); ++i) {
    const ir::OpCost& cost = costs.nodes[i];
    if (cost.work >= Nanoseconds(0) && cost.temporary >= Bytes(0)) continue;
    return ir::makeError(ir::ErrorCode::kInvalidArgument, "found a negative cost for n" +
                                                              std::to_string(i) + " " +
                                                              graph.describeNode(ir::NodeId(i)));
  }
  return ir::success();
}

/// A name of each kind of storage, for who does not know how they are called.
std::string exampleNames(const ir::Graph& graph) {
  std::string text;
  std::set<ir::Role> named;
  for (const ir::Storage& storage : graph.storages()) {
    if (storage.name.empty() || !named.insert(storage.role).second) continue;
    text += (text.empty() ? "'" : ", '") + storage.name + "' (" + ir::roleName(storage.role) + ")";
  }
  return text;
}

ir::Error checkPins(const ir::Graph& graph, const std::vector<Pin>& pins) {
  for (const Pin& pin : pins) {
    const bool matches =
        std::any_of(graph.storages().begin(), graph.storages().end(),
                    [&](const ir::Storage& s) { return matchesGlob(pin.pattern, s.name); });
    if (matches) continue;
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "found no storage that matches the pin '" + pin.pattern +
                             "'; expected names such as " + exampleNames(graph));
  }
  return ir::success();
}

}  // namespace

std::string describePin(const Pin& pin) {
  return pin.pattern + "=" + ir::gapActionName(pin.action);
}

// Classic two-pointer matching: on a mismatch the last star swallows one character more.
bool matchesGlob(llvm::StringRef pattern, llvm::StringRef name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = llvm::StringRef::npos;
  size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != llvm::StringRef::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

ir::Expected<Problem> makeProblem(const ir::Graph& graph, const ir::Target& target,
                                  const ir::CostTable& costs, Allowed allowed, Limits limits,
                                  std::vector<Pin> pins, ir::GraphMode graphMode) {
  ir::Expected<ir::NodeCosts> resolved = ir::resolveCosts(graph, costs, graphMode);
  if (!resolved) return resolved.takeError();
  if (ir::Error error = checkNodeCosts(graph, *resolved)) return error;
  if (ir::Error error = checkLinks(resolved->links)) return error;
  if (ir::Error error = checkPins(graph, pins)) return error;
  return Problem{.graph = graph,
                 .target = target,
                 .costs = std::move(*resolved),
                 .allowed = allowed,
                 .limits = limits,
                 .pins = std::move(pins),
                 .pinnedRows = {},
                 .graphMode = graphMode,
                 .lives = ir::computeLives(graph)};
}

}  // namespace stowage::planner
