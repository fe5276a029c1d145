// SPDX-License-Identifier: Apache-2.0
//
// Of any two commands that use a residency, one of them writing it, one has finished before the
// other starts: a read after a write (V10), a write after a read (V11), a write after a write
// (V12); V24 for the same between one step and the next. Each use is compared with the last write
// and the reads since: earlier ones are ordered before those, or reported already.
#include "ir/verify/verify_internal.h"

namespace stowage::ir::verifier {

namespace {

class HazardCheck {
 public:
  HazardCheck(const Facts& facts, const HappensBefore& order, Report& report)
      : facts_(facts), order_(order), report_(report) {}

  void run(ResidencyId residency) {
    writer_ = CommandInstance{};
    readers_ = Clock{};
    for (const int step : {0, 1}) {
      // Between the steps the caller refills an input: no command meets the step before.
      if (step == 1 && facts_.isInputSlot(residency)) break;
      for (const uint32_t use : facts_.usesOf(residency)) visit(step, facts_.allUses()[use]);
    }
  }

 private:
  void visit(int step, const Use& use) {
    const CommandInstance now{step, use.command};
    if (writer_.command.isValid() && !order_.isBefore(writer_, now)) {
      violate(use.reads ? 10 : 12, now, writer_, use,
              use.reads ? "reads what it writes" : "writes what it writes");
    }
    if (!use.writes) {
      order_.include(readers_, now);
      return;
    }
    checkReaders(now, use);
    writer_ = now;
    readers_ = Clock{};
  }

  void checkReaders(CommandInstance now, const Use& use) {
    const Clock& start = order_.start(now);
    for (size_t lane = 0; lane < start.size(); ++lane) {
      if (readers_[lane] <= start[lane]) continue;
      const CommandInstance reader = order_.lastOf(lane, readers_[lane]);
      violate(11, now, reader, use, "writes what it reads");
    }
  }

  // The second step repeats the first, so there only pairs across the step boundary are new.
  void violate(int rule, CommandInstance now, CommandInstance before, const Use& use,
               const char* what) {
    if (now.step == 1 && before.step == 1) return;
    const bool acrossBoundary = now.step != before.step;
    report_.add(acrossBoundary ? 24 : rule, now.command,
                facts_.describe(now.command) + " may start before " +
                    facts_.describe(before.command) +
                    (acrossBoundary ? " of the step before" : "") + " has finished, but " + what +
                    ": " + facts_.describe(use.residency));
  }

  const Facts& facts_;
  const HappensBefore& order_;
  Report& report_;
  CommandInstance writer_;  // last write of the residency visited; no command: none yet
  Clock readers_{};         // reads since; per lane the last counts
};

}  // namespace

void checkHazards(const Facts& facts, const HappensBefore& order, Report& report) {
  HazardCheck check(facts, order, report);
  for (size_t i = 0; i < facts.schedule.residencies.size(); ++i) check.run(ResidencyId(i));
}

}  // namespace stowage::ir::verifier
