// SPDX-License-Identifier: Apache-2.0
//
// What may be recomputed (V5) and random draws: originals keep the graph's order (V6), a recompute
// restores the slot in which its original saved the RNG state (V26). All draws are on the compute
// stream, so enqueue order is their order.
#include <map>

#include "ir/verify/verify_internal.h"

namespace stowage::ir::verifier {

namespace {

class RecomputeCheck {
 public:
  RecomputeCheck(const Facts& facts, Report& report)
      : facts_(facts), report_(report), recomputes_(facts.graph.nodes().size(), 0) {}

  void run() {
    for (size_t i = 0; i < facts_.schedule.commands.size(); ++i) {
      const CommandId id(i);
      const Command& command = facts_.schedule.command(id);
      if (command.kind != CommandKind::kRun) continue;
      if (command.recompute > 0) checkRecompute(id, command);
      checkDraw(id, command);
    }
  }

 private:
  void violate(int rule, CommandId id, const std::string& what) {
    report_.add(rule, id, facts_.describe(id) + " " + what);
  }

  void checkRecompute(CommandId id, const Command& run) {
    const OpInfo& op = facts_.op(run.node);
    if (!op.recomputable) violate(5, id, "recomputes an op that is not recomputable");
    if (!repeatsItsBits(op, facts_.target.deterministic))
      violate(5, id, "recomputes an op that does not repeat its bits");
    const CommandId original = facts_.original(run.node);
    if (!original.isValid() || id < original) violate(5, id, "recomputes before its original");
    const int expected = ++recomputes_[run.node.index()];
    if (run.recompute != expected) {
      violate(5, id, "is numbered out of order, expected recompute " + std::to_string(expected));
    }
    for (const Use& use : facts_.usesOf(id)) {
      if (!use.writes || !facts_.graph.storage(use.storage).persistent) continue;
      violate(5, id, "recomputes the persistent storage " + facts_.describe(use.storage));
    }
  }

  void checkDraw(CommandId id, const Command& run) {
    if (!facts_.op(run.node).random) {
      if (run.rngSlot >= 0) violate(26, id, "has an rng slot but draws nothing");
      return;
    }
    if (run.stream != Stream::kCompute) violate(26, id, "draws off the compute stream");
    if (run.recompute > 0) {
      checkRestore(id, run);
      return;
    }
    if (lastDrawn_.isValid() && run.node < lastDrawn_) {
      violate(
          6, id,
          "draws after n" + std::to_string(lastDrawn_.raw()) + ", expected the order of the graph");
    }
    lastDrawn_ = run.node;
    if (run.rngSlot >= 0) savedBy_[run.rngSlot] = run.node;
  }

  void checkRestore(CommandId id, const Command& run) {
    const auto saved = savedBy_.find(run.rngSlot);
    if (saved == savedBy_.end()) {
      violate(26, id,
              "restores rng slot " + std::to_string(run.rngSlot) + ", which nothing saved before");
    } else if (saved->second != run.node) {
      violate(26, id,
              "restores rng slot " + std::to_string(run.rngSlot) + ", last saved by n" +
                  std::to_string(saved->second.raw()) + ", expected its original");
    }
  }

  const Facts& facts_;
  Report& report_;
  std::vector<int> recomputes_;    // by node: recomputes so far
  std::map<int, NodeId> savedBy_;  // by slot
  NodeId lastDrawn_;
};

}  // namespace

void checkRecomputes(const Facts& facts, Report& report) { RecomputeCheck(facts, report).run(); }

}  // namespace stowage::ir::verifier
