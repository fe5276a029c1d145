// SPDX-License-Identifier: Apache-2.0
//
// What the code takes for granted about the compiler and LLVM: RTTI and exceptions work across
// LLVM's static Support library, and its containers link. Fails when LLVM was built without RTTI.

#include <gtest/gtest.h>

#include <stdexcept>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace {

class ProbeError : public llvm::ErrorInfo<ProbeError> {
 public:
  static char ID;  // NOLINT: the name LLVM looks for
  void log(llvm::raw_ostream& stream) const override { stream << "probe"; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
};
char ProbeError::ID = 0;

TEST(Toolchain, CarriesOwnErrorPayloadThroughExpected) {
  llvm::Expected<int> result = llvm::make_error<ProbeError>();
  ASSERT_FALSE(static_cast<bool>(result));
  EXPECT_EQ(llvm::toString(result.takeError()), "probe");
}

TEST(Toolchain, LinksContainersThatAllocateInTheSupportLibrary) {
  llvm::SmallVector<int, 2> values;
  for (int i = 0; i < 100; ++i) values.push_back(i);
  llvm::StringMap<int> byName;
  byName["last"] = values.back();
  EXPECT_EQ(byName.lookup("last"), 99);
}

TEST(Toolchain, ThrowsThroughFramesWithLlvmObjects) {
  auto thrower = [] {
    llvm::SmallVector<int, 1> values(10, 0);
    throw std::runtime_error("thrown with " + std::to_string(values.size()));
  };
  EXPECT_THROW(thrower(), std::runtime_error);
}

}  // namespace
