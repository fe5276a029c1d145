// SPDX-License-Identifier: Apache-2.0
//
// Which attention kernel CUDA takes, held against libtorch's own code for CUDA: random calls on
// devices of every kind.
#include "runtime/torch/internals/sdpa_choice.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "planner/targets/roofline.h"
#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/torch/torch_version.h"
#include "tests/support/cuda_part_of_torch.h"
#include "tests/support/or_fail.h"
#include "tests/support/random.h"

namespace stowage::runtime {
namespace {

using at::SDPBackend;
using tests::Random;

constexpr std::array kWidths = {8,   16,  20,  24,  60,  64,  96,  100, 128,
                                136, 160, 192, 200, 224, 232, 256, 264};
constexpr std::array kLengths = {1, 2, 7, 64, 100, 128};
constexpr std::array kDropouts = {0.0, 0.0, 0.1, 0.25, 0.5};
constexpr std::array kTypes = {c10::kFloat, c10::kHalf, c10::kBFloat16, c10::kDouble};

struct Call {
  AttentionCall attention;
  bool deterministic = false;
  bool warnOnly = false;
};

/// [batch, heads, length, width] in memory or in one of the orders that models have.
at::Tensor makeInput(Random& random, std::array<int64_t, 4> sizes, c10::ScalarType type) {
  const auto [batch, heads, length, width] = sizes;
  TensorShape shape;
  shape.dtype = type;
  shape.sizes = {batch, heads, length, width};
  shape.strides = {heads * length * width, length * width, width, 1};
  if (random.chance(40)) shape.strides = {length * heads * width, width, heads * width, 1};
  if (random.chance(5)) shape.strides = {heads * length * width, length * width, 1, length};
  if (random.chance(5)) shape.strides[1] = 0;
  if (random.chance(15)) shape.offset = random.between(0, 16);
  if (batch == 1 && random.chance(15)) {
    shape.sizes.erase(shape.sizes.begin());
    shape.strides.erase(shape.strides.begin());
  }
  const auto storage = makeFakeStorage(extentOf(shape), at::Device(at::kCUDA, 0), false);
  return makeTensor(storage, shape);
}

at::Tensor makeMask(Random& random, const at::Tensor& query, const at::Tensor& key) {
  TensorShape shape;
  shape.dtype = random.chance(50) ? c10::kBool : query.scalar_type();
  const int64_t rows = random.chance(80) ? query.size(-2) : 1, columns = key.size(-2);
  if (random.chance(30)) {
    shape.sizes = {rows, columns};
    shape.strides = {columns, 1};
  } else {
    const int64_t batch = random.chance(50) ? query.size(0) : 1;
    const int64_t heads = random.chance(50) ? query.size(-3) : 1;
    shape.sizes = {batch, heads, rows, columns};
    shape.strides = {heads * rows * columns, rows * columns, columns, 1};
  }
  const auto storage = makeFakeStorage(extentOf(shape), at::Device(at::kCUDA, 0), false);
  return makeTensor(storage, shape);
}

Call randomCall(Random& random) {
  const int64_t batch = random.between(1, 3), heads = random.pick(std::array{1, 2, 4, 6, 8});
  const int64_t keyHeads = random.chance(60) ? heads : random.pick(std::array{1, 2, 3, 4});
  const int64_t length = random.pick(kLengths);
  const int64_t keyLength = random.chance(60) ? length : random.pick(kLengths);
  const int64_t width = random.pick(kWidths);
  int64_t valueWidth = random.chance(85) ? width : random.pick(kWidths);
  if (width == 192 && random.chance(40)) valueWidth = 128;  // cuDNN has kernels for this one
  const auto type = random.pick(kTypes);
  const auto keyType = random.chance(95) ? type : random.pick(kTypes);
  Call call;
  AttentionCall& attention = call.attention;
  attention.query = makeInput(random, {batch, heads, length, width}, type);
  attention.key = makeInput(random, {batch, keyHeads, keyLength, width}, keyType);
  attention.value = makeInput(random, {batch, keyHeads, keyLength, valueWidth}, type);
  const bool plain = attention.query.dim() == 4 && attention.key.dim() == 4;
  if (plain && random.chance(25)) attention.mask = makeMask(random, attention.query, attention.key);
  attention.dropout = random.pick(kDropouts);
  attention.isCausal = random.chance(40);
  attention.groupsQueries = keyHeads != heads ? random.chance(80) : random.chance(10);
  // Without a batch, libtorch makes views: below autograd, as here, they need no gradients.
  const bool isBatched = plain && attention.value.dim() == 4;
  if (random.chance(70) && isBatched) {
    attention.query.set_requires_grad(true);
    if (attention.mask && attention.mask->is_floating_point() && random.chance(20)) {
      attention.mask->set_requires_grad(true);
    }
  }
  call.deterministic = random.chance(30);
  call.warnOnly = random.chance(20);
  return call;
}

std::string describe(const Call& call) {
  std::ostringstream text;
  const auto one = [&](const char* name, const at::Tensor& tensor) {
    text << name << " " << tensor.scalar_type() << tensor.sizes() << " by " << tensor.strides()
         << " from " << tensor.storage_offset() << "; ";
  };
  one("query", call.attention.query);
  one("key", call.attention.key);
  one("value", call.attention.value);
  if (call.attention.mask) one("mask", *call.attention.mask);
  text << "dropout " << call.attention.dropout << ", causal " << call.attention.isCausal
       << ", grouped " << call.attention.groupsQueries << ", deterministic " << call.deterministic
       << (call.warnOnly ? ", warns only" : "") << ", needs gradients "
       << call.attention.query.requires_grad();
  return text.str();
}

void setMode(const Call& call) {
  at::globalContext().setDeterministicAlgorithms(call.deterministic, call.warnOnly);
}

using Choose = int64_t (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                           const std::optional<at::Tensor>&, double, bool, std::optional<double>,
                           bool);

constexpr const char* kChooseOnCuda =
    "_ZN2at6native22_fused_sdp_choice_cudaERKNS_6TensorES3_S3_RKSt8optionalIS1_EdbS4_IdEb";

std::set<SDPBackend> kernelsOf(int capability) {
  std::set<SDPBackend> kernels = {SDPBackend::math, SDPBackend::efficient_attention};
  if (capability >= 80) kernels.insert(SDPBackend::flash_attention);
  if (capability / 10 == 9 || capability / 10 == 10) kernels.insert(SDPBackend::cudnn_attention);
  return kernels;
}

/// How many calls have another kernel than libtorch's code takes; prints the first ones. In a
/// process of its own: libtorch decides on its order once.
int countDifferences(const std::string& libraries, const ir::Target& target, int calls) {
  const std::string problem = tests::loadCudaPart(libraries);
  const auto choose =
      reinterpret_cast<Choose>(problem.empty() ? tests::cudaFunction(kChooseOnCuda) : nullptr);
  if (choose == nullptr) {
    std::fprintf(stderr, "%s\n", problem.empty() ? "no _fused_sdp_choice_cuda" : problem.c_str());
    return -1;
  }
  tests::setCapability(target.computeCapability);
  Random random(static_cast<uint64_t>(target.computeCapability));
  std::vector<Call> made;
  std::vector<int64_t> ours;
  for (int i = 0; i < calls; i++) {
    made.push_back(randomCall(random));
    setMode(made.back());
    ours.push_back(static_cast<int64_t>(chooseAttention(made.back().attention, target)));
  }
  int different = 0;
  std::set<SDPBackend> taken;
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;  // which would ask the driver
  for (int i = 0; i < calls; i++) {
    const AttentionCall& one = made[i].attention;
    setMode(made[i]);
    const int64_t theirs = choose(one.query, one.key, one.value, one.mask, one.dropout,
                                  one.isCausal, std::nullopt, one.groupsQueries);
    taken.insert(static_cast<SDPBackend>(theirs));
    if (theirs == ours[i]) continue;
    if (++different <= 5) {
      std::fprintf(stderr, "backend %ld, not %ld as libtorch: %s\n", ours[i], theirs,
                   describe(made[i]).c_str());
    }
  }
  if (taken != kernelsOf(target.computeCapability)) {
    std::fprintf(stderr, "the calls have not all kernels of this device\n");
    return -1;
  }
  std::fprintf(stderr, "%d of %d differ\n", different, calls);
  return different;
}

/// By compute capability: 90 for sm_90.
class SdpaChoice : public testing::TestWithParam<int> {};

TEST_P(SdpaChoice, IsThatOfLibtorchsOwnCode) {
  ir::Target target = tests::orFail(planner::findTargetProfile("h100", torchVersion()));
  target.computeCapability = GetParam();
  const std::string libraries = tests::librariesOf(STOWAGE_PYTHON);
  ASSERT_NE(libraries, "") << STOWAGE_PYTHON << " has no torch: run `tools/dev python --torch "
                           << torchVersion() << "`";
  if (!std::filesystem::exists(libraries + "/libtorch_cuda.so")) {
    GTEST_SKIP() << "the torch in " << libraries << " is without CUDA";
  }
  EXPECT_EXIT(std::_Exit(countDifferences(libraries, target, 4000) == 0 ? 0 : 1),
              testing::ExitedWithCode(0), "0 of 4000 differ");
}

// Without libtorch's CUDA libraries, too; and that the call needs gradients still counts.
TEST(SdpaChoiceOfOne, IsThatOfABatchOfOneFromTheNewestVersionOn) {
  const ir::Target target = tests::orFail(planner::findTargetProfile("h100", torchVersion()));
  const auto choose = [&](std::initializer_list<int64_t> sizes) {
    const int64_t width = 160, length = 64;
    TensorShape shape;
    shape.dtype = c10::kBFloat16;
    shape.sizes = sizes;
    shape.strides = {4 * length * width, length * width, width, 1};
    if (sizes.size() == 3) shape.strides.erase(shape.strides.begin());
    AttentionCall call;
    for (at::Tensor* one : {&call.query, &call.key, &call.value}) {
      *one = makeTensor(makeFakeStorage(extentOf(shape), at::Device(at::kCUDA, 0), false), shape);
    }
    call.query.set_requires_grad(true);
    return chooseAttention(call, target);
  };
  const bool isOldest = std::string(torchVersion()) == "2.11.0";
  EXPECT_EQ(choose({1, 4, 64, 160}),
            isOldest ? SDPBackend::cudnn_attention : SDPBackend::flash_attention);
  EXPECT_EQ(choose({4, 64, 160}), isOldest ? SDPBackend::math : SDPBackend::flash_attention);
}

INSTANTIATE_TEST_SUITE_P(Targets, SdpaChoice,
                         testing::Values(75, 80, 86, 89, 90, 100, 103, 120, 121));

}  // namespace
}  // namespace stowage::runtime
