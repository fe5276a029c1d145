// SPDX-License-Identifier: Apache-2.0
//
// Formulas of libtorch's backward that look at values on the host and go on by what they find. The
// autograd node that now runs -> what to say of it to who wrote the forward op.
#ifndef STOWAGE_RUNTIME_CAPTURE_OPS_BACKWARD_ADVICE_H_
#define STOWAGE_RUNTIME_CAPTURE_OPS_BACKWARD_ADVICE_H_

namespace stowage::runtime {

/// Null when no such formula runs on this thread.
const char* findBackwardAdvice();

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_OPS_BACKWARD_ADVICE_H_
