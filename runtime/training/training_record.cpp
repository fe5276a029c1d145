// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/training_record.h"

#include <algorithm>
#include <cstring>

namespace stowage::runtime {

namespace {

bool sameBytes(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

}  // namespace

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

void TrainingRecord::sortState() {
  std::sort(state.begin(), state.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
}

std::vector<std::string> findDifferences(const TrainingRecord& a, const TrainingRecord& b) {
  std::vector<std::string> differences;
  if (a.reports.size() != b.reports.size()) differences.emplace_back("the number of steps");
  for (size_t i = 0; i < std::min(a.reports.size(), b.reports.size()); ++i) {
    if (sameBytes(a.reports[i], b.reports[i])) continue;
    differences.push_back(a.lossName(i));
  }
  const auto lacks = [&](const std::string& name) {
    differences.push_back("state '" + name + "', which one of them lacks");
  };
  // Both are in order of name.
  auto x = a.state.begin();
  auto y = b.state.begin();
  while (x != a.state.end() || y != b.state.end()) {
    if (y == b.state.end() || (x != a.state.end() && x->first < y->first)) {
      lacks((x++)->first);
    } else if (x == a.state.end() || y->first < x->first) {
      lacks((y++)->first);
    } else {
      if (x->second != y->second) {
        differences.push_back("'" + x->first + "' after the last step");
      }
      ++x, ++y;
    }
  }
  return differences;
}

std::string firstDifference(const TrainingRecord& a, const TrainingRecord& b) {
  const std::vector<std::string> differences = findDifferences(a, b);
  return differences.empty() ? "" : differences.front();
}

}  // namespace stowage::runtime
