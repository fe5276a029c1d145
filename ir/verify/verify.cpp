// SPDX-License-Identifier: Apache-2.0
#include "ir/verify/verify.h"

#include <utility>

#include "ir/verify/verify_internal.h"

namespace stowage::ir {

namespace {

using namespace verifier;

void checkOrder(const Facts& facts, Report& report) {
  if (!facts.isAtLeast(Level::kPlaced)) return;
  const bool isSynced = facts.isAtLeast(Level::kSynced);
  const HappensBefore order(facts.schedule, isSynced ? Ordering::kStreams : Ordering::kEnqueue);
  checkHazards(facts, order, report);
  checkSharing(facts, order, report);
}

}  // namespace

std::vector<Violation> verify(const VerifyInput& input) {
  Report report;
  checkStructure(input, report);
  if (!report.isEmpty()) return std::move(report).take();
  const Facts facts(input);
  checkIdentity(facts, report);
  checkShape(facts, report);
  checkRecomputes(facts, report);
  checkData(facts, report);
  checkInPlaceReuse(facts, report);
  checkDecisions(facts, report);
  if (facts.isAtLeast(Level::kPlaced)) {
    checkPlaces(facts, report);
    checkClaims(facts, report);
  }
  checkOrder(facts, report);
  return std::move(report).take();
}

Error verifyOrError(const VerifyInput& input) {
  const std::vector<Violation> violations = verify(input);
  if (violations.empty()) return success();
  PlanError error(ErrorCode::kViolation,
                  "the schedule has " + std::to_string(violations.size()) +
                      (violations.size() == 1 ? " violation" : " violations"));
  for (const Violation& violation : violations) {
    error.note("V" + std::to_string(violation.rule) + ": " + violation.message);
  }
  return makeError(std::move(error));
}

}  // namespace stowage::ir
