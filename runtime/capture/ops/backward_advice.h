// SPDX-License-Identifier: Apache-2.0
//
// Advice on backward formulas of libtorch that branch on values read on the host. It maps the
// autograd node that now runs to a text for the author of the forward op.
#ifndef STOWAGE_RUNTIME_CAPTURE_OPS_BACKWARD_ADVICE_H_
#define STOWAGE_RUNTIME_CAPTURE_OPS_BACKWARD_ADVICE_H_

namespace stowage::runtime {

/// Null when no such formula runs on this thread.
const char* findBackwardAdvice();

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_OPS_BACKWARD_ADVICE_H_
