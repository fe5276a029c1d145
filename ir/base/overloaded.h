// SPDX-License-Identifier: Apache-2.0
//
// One visitor for std::visit out of several lambdas. Every alternative of the variant must be
// named: a new kind of argument is then a compile error wherever it was forgotten.
#ifndef STOWAGE_IR_BASE_OVERLOADED_H_
#define STOWAGE_IR_BASE_OVERLOADED_H_

namespace stowage::ir {

template <typename... Lambdas>
struct Overloaded : Lambdas... {
  using Lambdas::operator()...;
};
template <typename... Lambdas>
Overloaded(Lambdas...) -> Overloaded<Lambdas...>;

}  // namespace stowage::ir

#endif  // STOWAGE_IR_BASE_OVERLOADED_H_
