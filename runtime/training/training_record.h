// SPDX-License-Identifier: Apache-2.0
//
// What a training leaves behind, planned or not, so that two can be compared.
#ifndef STOWAGE_RUNTIME_TRAINING_TRAINING_RECORD_H_
#define STOWAGE_RUNTIME_TRAINING_TRAINING_RECORD_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/units.h"
#include "runtime/training/byte_digest.h"

namespace stowage::runtime {

/// One loss per step. Parameters, buffers and optimizer state by name ("wte.weight",
/// "m(wte.weight)").
struct TrainingRecord {
  int64_t firstStep = 0;  // of the training: steps done before those of `losses`
  std::vector<double> losses;
  std::vector<at::Tensor> reports;  // the first report of each step, bits included
  std::vector<std::pair<std::string, ByteDigest>> state;  // by name, ascending
  double secondsPerStep = 0;                              // mean of all steps but the first
  std::optional<Bytes> peak;                              // of libtorch's own allocator on a GPU

  Nanoseconds meanStep() const { return Nanoseconds(static_cast<int64_t>(secondsPerStep * 1e9)); }
  /// One more step's first report.
  void add(const at::Tensor& report);
  /// Drops what was reported before step `first` of the training, one of the recorded steps.
  void dropBefore(int64_t first);
  /// "the loss of step 3" for the third step of the training.
  std::string lossName(size_t index) const;
  /// Restores the order of `state` after additions.
  void sortState();
};

/// What differs between two trainings, byte for byte: losses first, then parameters, buffers and
/// optimizer state by name: "the loss of step 3", "'wte.weight' after the last step".
std::vector<std::string> findDifferences(const TrainingRecord& a, const TrainingRecord& b);
/// The first of them; "" when everything is equal.
std::string firstDifference(const TrainingRecord& a, const TrainingRecord& b);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_TRAINING_RECORD_H_
