// SPDX-License-Identifier: Apache-2.0
#include "tools/files/loaded_calls.h"

#include <optional>
#include <set>
#include <utility>

#include "ir/base/affix.h"
#include "planner/targets/roofline.h"
#include "runtime/capture/loaded/call_checks.h"
#include "runtime/torch/torch_types.h"

namespace stowage::tools {

namespace {

ir::Error checkOpsExist(const ir::Module& loaded) {
  std::set<std::string> seen;
  for (size_t i = 0; i < loaded.graph.nodes().size(); ++i) {
    const std::string& op = loaded.graph.nodes()[i].op;
    if (!ir::startsWith(op, "aten.") || !seen.insert(op).second) continue;
    ir::Expected<c10::OperatorHandle> found = runtime::findOperator(op);
    if (found) continue;
    ir::PlanError error = ir::takePayload(found.takeError());
    return ir::makeError(error.at(loaded.ops[i]));
  }
  return ir::success();
}

/// The machine that the step was captured for, as far as the graph says.
ir::Target targetOf(const ir::Graph& graph) {
  const ir::Provenance& from = graph.provenance();
  if (!from.target.empty()) {
    ir::Expected<ir::Target> target = planner::findTargetProfile(from.target);
    if (target) return *target;
    llvm::consumeError(target.takeError());  // said by who needs a target
  }
  ir::Target target;
  target.device = ir::findDeviceKind(from.device).value_or(ir::DeviceKind::kCpu);
  return target;
}

ir::Error toError(const runtime::WrongCall& wrong, ir::SourceLocation place) {
  return ir::makeError(ir::PlanError(wrong.code, wrong.text).at(std::move(place)));
}

}  // namespace

ir::Error checkLoadedCalls(const ir::Module& loaded) {
  if (ir::Error error = checkOpsExist(loaded)) return error;
  ir::Expected<std::optional<runtime::WrongCall>> wrong =
      runtime::findWrongCall(loaded.graph, targetOf(loaded.graph));
  if (!wrong) return wrong.takeError();
  if (!*wrong) return ir::success();
  return toError(**wrong, loaded.ops[(*wrong)->node.index()]);
}

ir::Error checkMayRun(const ir::Graph& graph, const std::string& path) {
  const std::optional<runtime::WrongCall> forbidden = runtime::findForbiddenCall(graph);
  return forbidden ? toError(*forbidden, {.file = path}) : ir::success();
}

}  // namespace stowage::tools
