// SPDX-License-Identifier: Apache-2.0
//
// Whether --resume goes on with the training of its checkpoint: the notes of both are compared, and
// recipes by what they mean. "lr=1e-3" is "lr=0.001", a renamed archive is the same one, and sizes
// of buckets may differ, like budgets, because they leave the bits alone.
#ifndef STOWAGE_TOOLS_TRAINING_RESUME_CHECK_H_
#define STOWAGE_TOOLS_TRAINING_RESUME_CHECK_H_

#include <string>

#include "ir/base/error.h"
#include "runtime/training/training_notes.h"

namespace stowage::tools {

struct ResumeCheck {
  std::string folder;  // of the checkpoint, for messages
  const runtime::TrainingNotes& saved;
  const runtime::TrainingNotes& now;
  bool otherData = false;  // asked for
};
/// Errors: kPlanMismatch with a note for everything that is not as in the checkpoint's training.
/// What a checkpoint does not note is not compared.
ir::Error checkSameTraining(const ResumeCheck& check);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_TRAINING_RESUME_CHECK_H_
