// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/shape_rules.h"

namespace stowage::runtime {

llvm::ArrayRef<NamedRule> convolutionRules() { return {}; }

}  // namespace stowage::runtime
