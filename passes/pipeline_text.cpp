// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline_text.h"

#include <llvm/ADT/STLExtras.h>

#include <iterator>
#include <utility>

#include "ir/graph/op_table.h"
#include "ir/schedule/fingerprint.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/lowering/evaluate_decisions.h"
#include "passes/manage/pass_options.h"
#include "passes/pipeline.h"

namespace stowage::passes {

namespace {

/// What a run of a pipeline writes, and the reports it may be asked for.
struct Output {
  std::string text;
  bool isUsed = false;  // something was printed on request
  std::vector<PassRecord> records;
};

std::string reportText(const PassRecord& record) {
  std::string text =
      "// " + record.pass + ":" + (record.report.changed ? " changed" : " unchanged");
  for (const auto& [counter, value] : record.report.counters) {
    text += " " + counter + "=" + std::to_string(value);
  }
  text += "\n";
  for (const std::string& remark : record.report.remarks) text += "//   " + remark + "\n";
  return text;
}

/// An item that only looks: it writes to the output and leaves the state alone.
class Viewer : public Pass {
 public:
  Viewer(std::string name, Output& output) : name_(std::move(name)), output_(output) {}
  std::string name() const override { return name_; }
  ir::Expected<PassReport> run(PassState& state) const override {
    output_.isUsed = output_.isUsed || name_ != "verify";
    if (name_ == "print") output_.text += toText(state);
    if (name_ == "report") {
      for (const PassRecord& record : output_.records) output_.text += reportText(record);
    }
    // The manager checks after every pass, this one included; here it is only said.
    if (name_ == "verify") {
      output_.text += state.schedule ? std::string("// verified: level ") +
                                           ir::levelName(state.schedule->level) + "\n"
                                     : "// verified: graph\n";
    }
    return PassReport{};
  }

 private:
  std::string name_;
  Output& output_;
};

/// Keeps the reports for `report` and hands everything on.
class Recorder : public PassObserver {
 public:
  Recorder(Output& output, PassObserver* next) : output_(output), next_(next) {}
  void beforePass(const Pass& pass, const PassState& state) override {
    if (next_ != nullptr) next_->beforePass(pass, state);
  }
  void afterPass(const Pass& pass, const PassReport& report, const PassState& state) override {
    if (dynamic_cast<const Viewer*>(&pass) == nullptr) {
      output_.records.push_back({pass.name(), report});
    }
    if (next_ != nullptr) next_->afterPass(pass, report, state);
  }

 private:
  Output& output_;
  PassObserver* next_;
};

ir::Expected<PassList> makeTextPasses(const PipelineItem& item, Output& output) {
  PassList list;
  if (item.name == "print" || item.name == "report" || item.name == "verify") {
    if (ir::Error error = OptionReader(item.name, item.options).finish()) return error;
    list.push_back(std::make_unique<Viewer>(item.name, output));
    return list;
  }
  if (item.name == "evaluate") {
    ir::Expected<std::unique_ptr<Pass>> pass = EvaluateDecisions::parse(item.options);
    if (!pass) return pass.takeError();
    list.push_back(std::move(*pass));
    return list;
  }
  const std::vector<std::string> known = textPassNames();
  if (!llvm::is_contained(known, item.name)) return refuseUnknownPass(item.name, known);
  return makePasses(item);
}

ir::Expected<PassList> parseTextPipeline(llvm::StringRef text, Output& output) {
  ir::Expected<std::vector<PipelineItem>> items = splitPipeline(text);
  if (!items) return items.takeError();
  PassList list;
  for (const PipelineItem& item : *items) {
    ir::Expected<PassList> passes = makeTextPasses(item, output);
    if (!passes) return passes.takeError();
    list.insert(list.end(), std::make_move_iterator(passes->begin()),
                std::make_move_iterator(passes->end()));
  }
  return list;
}

ir::Target makeTextTarget() {
  ir::Target target;
  target.profile = "text";
  target.device = ir::DeviceKind::kCpu;
  target.alignBytes = 512;
  target.intraOpThreads = 1;
  return target;
}

/// A schedule written by hand says that it is of its graph by saying nothing.
void stamp(ir::Schedule& schedule, const PassState& state) {
  if (schedule.graphFingerprint.empty()) schedule.graphFingerprint = ir::fingerprint(state.graph);
  if (schedule.targetFingerprint.empty()) {
    schedule.targetFingerprint = ir::fingerprint(state.target);
  }
  if (schedule.opTableVersion == 0) schedule.opTableVersion = ir::opTableVersion();
}

PassState makeState(ir::Module module) {
  PassState state{.graph = std::move(module.graph),
                  .schedule = std::nullopt,
                  .target = makeTextTarget(),
                  .timetable = std::nullopt,
                  .decisions = {}};
  if (!module.schedule) return state;
  state.decisions.rows = module.schedule->decisions;
  if (module.schedule->commands.empty()) return state;
  state.schedule = std::move(module.schedule);
  stamp(*state.schedule, state);
  return state;
}

}  // namespace

std::string toText(const PassState& state) {
  return state.schedule ? ir::toText(state.graph, *state.schedule) : ir::toText(state.graph);
}

std::vector<std::string> textPassNames() {
  std::vector<std::string> names = allPassNames();
  names.insert(names.end(), {"evaluate", "print", "report", "verify"});
  return names;
}

ir::Expected<std::string> runPipelineOnText(llvm::StringRef pipeline, llvm::StringRef irText,
                                            std::string fileName, PassObserver* observer) {
  Output output;
  ir::Expected<PassList> passes = parseTextPipeline(pipeline, output);
  if (!passes) return passes.takeError();
  ir::Expected<ir::Module> module = ir::parseModule(irText, std::move(fileName));
  if (!module) return module.takeError();
  PassState state = makeState(std::move(*module));
  Recorder recorder(output, observer);
  ir::Expected<std::vector<PassRecord>> records =
      PassManager(std::move(*passes)).run(state, &recorder);
  if (!records) return records.takeError();
  if (!output.isUsed) output.text += toText(state);
  return output.text;
}

}  // namespace stowage::passes
