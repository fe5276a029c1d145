// SPDX-License-Identifier: Apache-2.0
//
// What a word that nobody knows is answered with: the nearest name, if one is near, and all names.
#include "ir/base/nearest_name.h"

#include <gtest/gtest.h>

namespace stowage::ir {
namespace {

TEST(NearestName, AnUnknownWordIsAnsweredWithANearNameAndAllNames) {
  const std::vector<std::string> names = {"offload", "recompute"};
  EXPECT_EQ(describeUnknown("word", "ofload", "a comma list of", names),
            "unknown word 'ofload', did you mean 'offload'?; expected a comma list of offload, "
            "recompute");
  EXPECT_EQ(describeUnknown("policy", "x", "one of", names),
            "unknown policy 'x'; expected one of offload, recompute");
}

}  // namespace
}  // namespace stowage::ir
