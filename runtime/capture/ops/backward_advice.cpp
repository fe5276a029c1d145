// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/ops/backward_advice.h"

#include <llvm/ADT/StringRef.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <string>

namespace stowage::runtime {
namespace {

struct Advice {
  const char* node;  // begin of the autograd node's name
  const char* text;
};

constexpr Advice kAdvice[] = {
    {"CumprodBackward",
     "libtorch's own backward of cumprod() asks on the host whether an element of its input is 0 "
     "and goes on by that; multiply slices one by one (x.select(dim, i) * ...), or compute "
     "exp(cumsum(log(x))) of positive numbers"},
    {"ProdBackward",
     "libtorch's own backward of prod() looks on the host for elements of its input that are 0 "
     "(item(), nonzero()) and goes on by what it finds; multiply slices one by one "
     "(x.select(dim, i) * ...), or compute exp(sum(log(x))) of positive numbers"},
};

}  // namespace

const char* findBackwardAdvice() {
  if (torch::autograd::get_current_graph_task_id() == -1) return nullptr;
  const auto node = torch::autograd::get_current_node();
  if (node == nullptr) return nullptr;
  const std::string name = node->name();
  for (const Advice& advice : kAdvice) {
    if (llvm::StringRef(name).startswith(advice.node)) return advice.text;
  }
  return nullptr;
}

}  // namespace stowage::runtime
