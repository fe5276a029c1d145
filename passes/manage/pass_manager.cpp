// SPDX-License-Identifier: Apache-2.0
#include "passes/manage/pass_manager.h"

#include <cassert>
#include <utility>

#include "ir/graph/check_graph.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"

namespace stowage::passes {

namespace {

ir::Error checkState(const PassState& state) {
  if (!state.schedule) return ir::checkGraph(state.graph);
  return ir::verifyOrError({.graph = state.graph,
                            .schedule = *state.schedule,
                            .target = state.target,
                            .budget = Bytes()});
}

/// The same error, its message preceded by `context`, with a reproducer.
ir::Error wrap(ir::Error error, const std::string& context, std::string reproducer) {
  ir::PlanError inner = ir::takePayload(std::move(error));
  ir::PlanError outer(inner.code(), context + ": " + inner.text());
  outer.at(inner.location());
  outer.notesOf(inner);
  if (inner.infeasible()) outer.because(*inner.infeasible());
  return ir::makeError(std::move(outer.attach(std::move(reproducer))));
}

bool isLowering(const Pass& pass) { return pass.gives().has_value(); }

/// The part of a state that `pass` may change. Normalising passes make a new graph, lowering passes
/// a new schedule; nothing else is worth a copy.
PassState snapshot(const Pass& pass, const PassState& state) {
  PassState copy;
  if (isLowering(pass)) {
    copy.schedule = state.schedule;
  } else {
    copy.graph = state.graph;
  }
  return copy;
}

void restore(const Pass& pass, PassState& state, PassState before) {
  if (isLowering(pass)) {
    state.schedule = std::move(before.schedule);
  } else {
    state.graph = std::move(before.graph);
  }
}

ir::Error checkLevel(const Pass& pass, const PassState& state) {
  if (!pass.needs()) return ir::success();
  const char* found = state.schedule ? ir::levelName(state.schedule->level) : "no schedule";
  if (state.schedule && state.schedule->level == *pass.needs()) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument, pass.name() + ": found " + found +
                                                            ", expected a schedule at level " +
                                                            ir::levelName(*pass.needs()));
}

#ifndef NDEBUG
/// Does the report's `changed` say what happened?
ir::Error auditChanged(const Pass& pass, const PassReport& report, const PassState& before,
                       const PassState& after) {
  const bool changed =
      isLowering(pass) ? before.schedule != after.schedule : !(before.graph == after.graph);
  if (changed == report.changed) return ir::success();
  return ir::makeError(ir::ErrorCode::kInternal,
                       pass.name() + (changed ? " changed the IR and reported no change"
                                              : " reported a change and changed nothing"));
}
#endif

}  // namespace

std::string passText(const Pass& pass) {
  const std::string options = pass.options();
  return options.empty() ? pass.name() : pass.name() + "{" + options + "}";
}

std::string PassManager::text() const {
  std::string text;
  for (const auto& pass : passes_) text += (text.empty() ? "" : ",") + passText(*pass);
  return text;
}

std::string PassManager::makeReproducer(size_t failing, const PassState& before) const {
  // A timetable has no text form: lowering starts again from the decisions it was made from.
  const bool replay = before.timetable.has_value();
  size_t first = failing;
  while (replay && first > 0 && isLowering(*passes_[first - 1])) --first;
  std::string pipeline = replay ? "evaluate" : "";
  for (size_t i = first; i <= failing; ++i) {
    pipeline += (pipeline.empty() ? "" : ",") + passText(*passes_[i]);
  }
  std::string text = kReproducerPrefix + pipeline + "\n";
  if (before.schedule && !replay) return text + ir::toText(before.graph, *before.schedule);
  ir::Schedule decisions;
  decisions.decisions = replay ? before.timetable->decisions.rows : before.decisions.rows;
  return text + (decisions.decisions.empty() ? ir::toText(before.graph)
                                             : ir::toText(before.graph, decisions));
}

ir::Expected<PassReport> PassManager::runOne(size_t index, PassState& state) const {
  const Pass& pass = *passes_[index];
  PassState before = snapshot(pass, state);
  if (ir::Error error = checkLevel(pass, state)) {
    return wrap(std::move(error), "wrong order", makeReproducer(index, state));
  }
  ir::Expected<PassReport> report = pass.run(state);
  if (!report) {
    return wrap(report.takeError(), pass.name() + " failed", makeReproducer(index, state));
  }
  ir::Error broken = checkState(state);
#ifndef NDEBUG
  if (!broken) broken = auditChanged(pass, *report, before, state);
#endif
  if (broken) {
    restore(pass, state, std::move(before));
    return wrap(std::move(broken), "failed after " + pass.name(), makeReproducer(index, state));
  }
  assert((!pass.gives() || state.schedule->level == *pass.gives()) && "pass gave another level");
  return report;
}

ir::Expected<std::vector<PassRecord>> PassManager::run(PassState& state,
                                                       PassObserver* observer) const {
  if (ir::Error error = checkState(state)) {
    return wrap(std::move(error), "failed before the first pass",
                passes_.empty() ? "" : makeReproducer(0, state));
  }
  std::vector<PassRecord> records;
  for (size_t i = 0; i < passes_.size(); ++i) {
    if (observer != nullptr) observer->beforePass(*passes_[i], state);
    ir::Expected<PassReport> report = runOne(i, state);
    if (!report) return report.takeError();
    if (observer != nullptr) observer->afterPass(*passes_[i], *report, state);
    records.push_back({passes_[i]->name(), std::move(*report)});
  }
  return records;
}

}  // namespace stowage::passes
