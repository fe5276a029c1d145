// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/shape_rules.h"

namespace stowage::runtime {

llvm::ArrayRef<NamedRule> optimizerRules() { return {}; }

}  // namespace stowage::runtime
