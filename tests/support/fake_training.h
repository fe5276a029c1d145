// SPDX-License-Identifier: Apache-2.0
//
// Trains on a fake device and compares with the plain execution of the graph: the persistent state
// and the outputs of every step, byte for byte. Reports what went wrong as text, so that tests can
// expect success as well as failure.
#ifndef STOWAGE_TESTS_SUPPORT_FAKE_TRAINING_H_
#define STOWAGE_TESTS_SUPPORT_FAKE_TRAINING_H_

#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "runtime/executor/device.h"
#include "runtime/executor/executor.h"

namespace stowage::tests {

/// Step scalars that differ after every `stepsPerNumber` steps.
class CountingFeed : public runtime::ScalarFeed {
 public:
  explicit CountingFeed(const ir::Graph& graph, int64_t stepsPerNumber = 1);
  void begin(int64_t step) override;
  ir::Expected<llvm::ArrayRef<runtime::ScalarValue>> join() override;

 private:
  const ir::Graph& graph_;
  int64_t stepsPerNumber_;
  std::vector<runtime::ScalarValue> values_;
};

/// On a FakeDevice what each launch wrote is compared too, read or not. "" if `steps` steps gave
/// what the reference gives; else the first difference or error.
std::string compareWithReference(runtime::Device& device, const runtime::PlanSource& plan,
                                 int steps, int64_t stepsPerNumber = 1);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_FAKE_TRAINING_H_
