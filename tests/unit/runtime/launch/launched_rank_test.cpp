// SPDX-License-Identifier: Apache-2.0
//
// A launcher's variables are read as they are meant, or the one that is wrong is named.
#include "runtime/launch/launched_rank.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/support/or_fail.h"

namespace stowage::runtime {
namespace {

using Variables = std::map<std::string, std::string>;

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node0"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"TORCHELASTIC_RUN_ID", "a7"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"}};

ir::Expected<std::optional<LaunchedRank>> read(const Variables& variables) {
  return readLaunchedRank([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Variables without(const std::string& name) {
  Variables variables = kTorchrun;
  variables.erase(name);
  return variables;
}

Variables with(const std::string& name, const std::string& value) {
  Variables variables = without(name);
  variables[name] = value;
  return variables;
}

TEST(LaunchedRank, IsReadFromTorchrunsVariables) {
  const LaunchedRank launched = tests::orFail(read(kTorchrun)).value();
  EXPECT_EQ(launched.rank, 5);
  EXPECT_EQ(launched.count, 8);
  EXPECT_EQ(launched.localRank, 1);
  EXPECT_EQ(launched.localCount, 4);
  EXPECT_EQ(launched.store.host, "node0");
  EXPECT_EQ(launched.store.port, 29500);
  EXPECT_TRUE(launched.isStoreServed);
  EXPECT_EQ(launched.keys, "stowage/a7/2/");
}

TEST(LaunchedRank, ServesItsOwnStoreUnderOtherLaunchers) {
  Variables variables = kTorchrun;
  for (const char* name :
       {"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}) {
    variables.erase(name);
  }
  const LaunchedRank launched = tests::orFail(read(variables)).value();
  EXPECT_FALSE(launched.isStoreServed);
  EXPECT_EQ(launched.keys, "stowage/none/0/");
}

TEST(LaunchedRank, IsNoneWithoutALauncher) {
  EXPECT_FALSE(tests::orFail(read({})).has_value());
  EXPECT_FALSE(tests::orFail(read({{"MASTER_ADDR", "node0"}, {"LOCAL_RANK", "0"}})).has_value());
  EXPECT_FALSE(tests::orFail(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}})).has_value());
}

TEST(LaunchedRank, NamesTheVariableThatIsWrong) {
  const std::pair<Variables, std::string> cases[] = {
      {without("RANK"), "the variable RANK: is not set, expected 0 to 7"},
      {without("WORLD_SIZE"), "the variable WORLD_SIZE: is not set, expected 1 or more"},
      {without("LOCAL_RANK"), "the variable LOCAL_RANK: is not set, expected 0 to 3"},
      {without("LOCAL_WORLD_SIZE"), "the variable LOCAL_WORLD_SIZE: is not set, expected 1 to 8"},
      {without("MASTER_ADDR"), "the variable MASTER_ADDR: is not set, expected a host"},
      {without("MASTER_PORT"), "the variable MASTER_PORT: is not set, expected 1 to 65535"},
      {with("RANK", "8"), "the variable RANK: found '8', expected 0 to 7"},
      {with("RANK", "-1"), "the variable RANK: found '-1', expected 0 to 7"},
      {with("RANK", "1x"), "the variable RANK: found '1x', expected 0 to 7"},
      {with("WORLD_SIZE", "0"), "the variable WORLD_SIZE: found '0', expected 1 or more"},
      {with("WORLD_SIZE", "99999999999"),
       "the variable WORLD_SIZE: found '99999999999', expected 1 or more"},
      {with("LOCAL_RANK", "4"), "the variable LOCAL_RANK: found '4', expected 0 to 3"},
      {with("MASTER_PORT", "70000"),
       "the variable MASTER_PORT: found '70000', expected 1 to 65535"},
      {with("MASTER_ADDR", ""), "the variable MASTER_ADDR: found '', expected a host"}};
  for (const auto& [variables, expected] : cases) {
    ir::Expected<std::optional<LaunchedRank>> found = read(variables);
    ASSERT_FALSE(found) << expected;
    EXPECT_EQ(ir::describe(found.takeError()),
              expected + " ('torchrun' sets it; without RANK and WORLD_SIZE a process is alone)");
  }
}

}  // namespace
}  // namespace stowage::runtime
