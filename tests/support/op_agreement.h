// SPDX-License-Identifier: Apache-2.0
//
// One piece of libtorch code, run for real and run on tensors without memory: do tracer and real
// ops say the same? On the CPU always; on a GPU too where the process has one (libtorch_cuda
// loaded). Keeps the names of all ops that agreed, so that a test can ask which rule no row has
// checked.
#ifndef STOWAGE_TESTS_SUPPORT_OP_AGREEMENT_H_
#define STOWAGE_TESTS_SUPPORT_OP_AGREEMENT_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace stowage::tests {

using Tensors = std::vector<at::Tensor>;
using Call = std::function<void(const Tensors&)>;

struct OpCase {
  std::string name;
  std::function<Tensors()> inputs;  // on the CPU
  Call code;
};

/// A tensor without memory on `device` that looks like `real`.
at::Tensor standIn(const at::Tensor& real, c10::Device device);

/// Empty when tracer and real op agree on `device`.
std::string disagreement(const OpCase& op, c10::Device device = c10::Device(c10::kCPU));

void expectAgreement(const std::vector<OpCase>& cases);
/// Each call on its own, so that one that fails hides no other.
void expectAgreement(const std::function<Tensors()>& inputs, const std::vector<Call>& calls);

enum class Where { kBoth, kCpu };
/// Each call on each of `tensors` as its first and only input, on the GPU too if there is one.
void expectAgreementOn(const Tensors& tensors, const std::vector<Call>& calls,
                       Where where = Where::kBoth);

/// Row-major, reversed, with gaps, expanded, and channels last where there are 4 or 5 dimensions.
Tensors layoutsOf(const std::vector<int64_t>& shape, at::ScalarType dtype = at::kFloat);

/// What ops of CUDA alone return, by the tracer: the part of its text behind the arrow of the call
/// of `op`. On a GPU the real op is asked too.
std::string resultsOnCuda(const std::string& op, const OpCase& code);

/// Names of all ops that agreed so far in this process.
const std::set<std::string>& agreedOps();

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_OP_AGREEMENT_H_
