// SPDX-License-Identifier: Apache-2.0
#include "tools/training/training_record.h"

namespace stowage::tools {

void TrainingRecord::add(const at::Tensor& report) {
  reports.push_back(report.detach().cpu().clone());
  losses.push_back(report.item<double>());
}

void TrainingRecord::dropBefore(int64_t first) {
  const int64_t count = first - firstStep;
  losses.erase(losses.begin(), losses.begin() + count);
  reports.erase(reports.begin(), reports.begin() + count);
  firstStep = first;
}

std::string TrainingRecord::lossName(size_t index) const {
  return "the loss of step " + std::to_string(firstStep + static_cast<int64_t>(index) + 1);
}

}  // namespace stowage::tools
