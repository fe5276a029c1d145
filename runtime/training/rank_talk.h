// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a training tell each other beside its steps: how it is to go, losses, whether
// to stop. Every rank makes the same calls in the same order. A training of one process talks to
// nobody.
#ifndef STOWAGE_RUNTIME_TRAINING_RANK_TALK_H_
#define STOWAGE_RUNTIME_TRAINING_RANK_TALK_H_

#include <cstdint>

#include "ir/base/error.h"
#include "runtime/ranks/training_ranks.h"
#include "runtime/training/planned_training.h"

namespace stowage::runtime {

class RankTalk {
 public:
  /// Null: one process.
  explicit RankTalk(const TrainingRanks* ranks) : ranks_(ranks) {}

  int64_t count() const { return ranks_ == nullptr ? 1 : ranks_->count(); }
  int64_t rank() const { return ranks_ == nullptr ? 0 : ranks_->rank(); }

  /// Have all ranks the same steps, pauses, seed, and step to begin at? Errors: kEnvironment,
  /// naming the first that differs.
  ir::Error agreeOn(const TrainingOptions& options, const ResumePoint& start) const;
  /// The mean over ranks, added in rank order.
  ir::Expected<double> meanOf(double own) const;
  /// Does any rank say so?
  ir::Expected<bool> anyOf(bool own) const;
  /// Returns `error`, if it is one; the other ranks then fail with its text. No step is under way.
  ir::Error giveUpWith(ir::Error error) const;

 private:
  const TrainingRanks* ranks_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_RANK_TALK_H_
