// SPDX-License-Identifier: Apache-2.0
//
// Damaged copies of a small archive, from a fixed seed: bytes changed, cut off, inserted, and edits
// of the program's JSON that leave it JSON. Each is either refused with a place or imported as a
// graph that holds all invariants; none crashes. STOWAGE_MUTATIONS says how many of each kind
// (default 1000; the full run is 5000).

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "ir/graph/check_graph.h"
#include "runtime/capture/pt2/pt2_import.h"
#include "tests/support/small_pt2.h"
#include "tools/cli/exit_code.h"

namespace stowage::tests {
namespace {

using nlohmann::json;
using Random = std::mt19937_64;

constexpr uint64_t kProgramSeeds = 1 << 20;

int mutationCount() {
  const char* count = std::getenv("STOWAGE_MUTATIONS");
  return count == nullptr ? 1000 : std::atoi(count);
}

size_t below(Random& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

std::string damage(std::string bytes, Random& random) {
  const size_t times = 1 + below(random, 3);
  for (size_t i = 0; i < times && !bytes.empty(); ++i) {
    const size_t at = below(random, bytes.size());
    switch (below(random, 6)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(random, bytes.size()), below(random, 64)));
        break;
      case 4:
        bytes.erase(at, 1 + below(random, 64));
        break;
      default:
        // The directory at the end is a small part of the file.
        bytes[bytes.size() - 1 - below(random, std::min<size_t>(bytes.size(), 320))] =
            static_cast<char>(random());
    }
  }
  return bytes;
}

/// Every value inside `document`, itself included.
void collect(json& document, std::vector<json*>& values) {
  values.push_back(&document);
  for (json& child : document) {
    if (document.is_structured()) collect(child, values);
  }
}

json oddValue(Random& random, const std::vector<json*>& values) {
  static const std::vector<json> kOdd = {nullptr,
                                         true,
                                         -1,
                                         0,
                                         1,
                                         7,
                                         13,
                                         int64_t{1} << 40,
                                         std::numeric_limits<int64_t>::max(),
                                         std::numeric_limits<uint64_t>::max(),
                                         1e300,
                                         "",
                                         "mm",
                                         "a_0",
                                         "torch.ops.aten.split.Tensor",
                                         "torch.ops.aten.view.default",
                                         "torch.ops.aten.as_strided.default",
                                         "torch.ops.aten.copy_.default",
                                         "torch.ops.aten.mul.Tensor",
                                         "torch.ops.aten.native_layer_norm.default",
                                         json::array(),
                                         json::object(),
                                         json::array({json::array()}),
                                         {{"as_none", true}}};
  if (below(random, 3) == 0) return *values[below(random, values.size())];
  return kOdd[below(random, kOdd.size())];
}

json edit(json document, Random& random) {
  const size_t times = 1 + below(random, 3);
  for (size_t i = 0; i < times; ++i) {
    std::vector<json*> values;
    collect(document, values);
    json& value = *values[below(random, values.size())];
    const size_t how = below(random, 3);
    if (how == 0 && value.is_structured() && !value.empty()) {
      value.erase(std::next(value.begin(), static_cast<int>(below(random, value.size()))));
    } else if (how == 1 && value.is_array() && !value.empty()) {
      value.push_back(value[below(random, value.size())]);
    } else {
      const json odd = oddValue(random, values);
      value = odd;
    }
  }
  return document;
}

class Pt2Mutations : public testing::Test {
 protected:
  void import(const std::string& archive, int number) {
    const std::string side = number % 2 == 0 ? smallStepSideFile() : "";
    auto step = runtime::importTrainingStep(writePt2("mutation_test", archive, side),
                                            {.profile = "cpu", .device = ir::DeviceKind::kCpu});
    if (step) {
      ++imported_;
      ir::Error error = ir::checkGraph(step->graph);
      EXPECT_FALSE(bool(error)) << number << ": " << ir::describe(std::move(error));
      return;
    }
    const ir::PlanError error = ir::takePayload(step.takeError());
    EXPECT_FALSE(error.location().file.empty()) << number << ": " << error.text();
    EXPECT_FALSE(error.text().empty()) << number;
    // A tensor may have been moved to a GPU, which is another target: wrong usage.
    const int code = tools::exitCodeFor(error.code());
    EXPECT_TRUE(code == tools::kExitBadInput || error.code() == ir::ErrorCode::kInvalidArgument)
        << number << ": " << error.text();
    ++refused_;
  }

  int imported_ = 0;
  int refused_ = 0;
};

TEST_F(Pt2Mutations, OfTheArchive) {
  const std::string archive = packPt2(smallStepProgram().dump());
  const int count = mutationCount();
  for (int i = 0; i < count; ++i) {
    Random random(static_cast<uint64_t>(i));
    import(damage(archive, random), i);
  }
  // Changes in what nobody reads (times, comments) are none.
  EXPECT_GT(imported_, count / 100);
  EXPECT_GT(refused_, count / 2);
}

TEST_F(Pt2Mutations, OfTheProgram) {
  const json program = smallStepProgram();
  const int count = mutationCount();
  for (int i = 0; i < count; ++i) {
    Random random(kProgramSeeds + static_cast<uint64_t>(i));
    import(packPt2(edit(program, random).dump()), i);
  }
  EXPECT_GT(imported_, count / 100);
  EXPECT_GT(refused_, count / 4);
}

}  // namespace
}  // namespace stowage::tests
