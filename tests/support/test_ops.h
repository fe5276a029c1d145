// SPDX-License-Identifier: Apache-2.0
//
// Ops that misbehave, in libtorch's registry under `stowage_test`. Being linked registers them:
//   hoard(Tensor x, int bytes) -> Tensor   copies x and takes bytes from malloc meanwhile
//   scratch(Tensor x, int bytes) -> Tensor copies x and takes bytes from libtorch's allocator
//   keep(Tensor x, int bytes) -> Tensor    the same, and holds them for ever
//   elsewhere(Tensor x) -> Tensor          copies x into its second allocation, drops the first
//   fail(Tensor x) -> Tensor               throws
#ifndef STOWAGE_TESTS_SUPPORT_TEST_OPS_H_
#define STOWAGE_TESTS_SUPPORT_TEST_OPS_H_

namespace stowage::tests {

/// Makes sure that the registrations are linked in.
void registerTestOps();

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_TEST_OPS_H_
