// SPDX-License-Identifier: Apache-2.0
//
// Ops on images against the real ops: every layout, with and without a batch, and empty batches.

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "tests/support/op_agreement.h"
#include "tests/unit/runtime/capture/ops/rule_checks.h"

namespace stowage::tests {
namespace {

constexpr int64_t kBatch = 2, kChannels = 4;

/// Images of `dims` dimensions in every layout, one without a batch, one with an empty batch.
Tensors images(int64_t dims, at::ScalarType dtype = at::kFloat) {
  std::vector<int64_t> shape = {kBatch, kChannels, 4, 6, 6};
  shape.resize(static_cast<size_t>(dims + 1));
  shape.push_back(6);
  Tensors made = layoutsOf(shape, dtype);
  std::vector<int64_t> one(shape.begin() + 1, shape.end());
  made.push_back(at::rand(one).to(dtype));
  shape[0] = 0;
  made.push_back(at::rand(shape).to(dtype));
  return made;
}

Tensors batchesOf(Tensors tensors) {
  const int64_t dims = tensors.front().dim();
  Tensors kept;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.dim() == dims) kept.push_back(tensor);
  }
  return kept;
}

/// The same values with the dimensions in reverse order in memory.
at::Tensor reversed(const at::Tensor& x) {
  return x.transpose(0, -1).contiguous().transpose(0, -1);
}

/// [n, outputs..., dims] of places to sample at.
at::Tensor gridFor(const at::Tensor& x) {
  std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 3);
  sizes.front() = x.size(0);
  sizes.back() = x.dim() - 2;
  return at::rand(sizes, x.options());
}

}  // namespace

void checkPadding() {
  expectAgreementOn(images(1), {[](const Tensors& t) {
                                  const at::Tensor out = at::reflection_pad1d(t[0], {1, 2});
                                  at::reflection_pad1d_backward(reversed(out), t[0], {1, 2});
                                },
                                [](const Tensors& t) {
                                  const at::Tensor out = at::replication_pad1d(t[0], {1, 2});
                                  at::replication_pad1d_backward(out, t[0], {1, 2});
                                }});
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    expectAgreementOn(images(2, dtype),
                      {[](const Tensors& t) {
                         const at::Tensor out = at::reflection_pad2d(t[0], {1, 2, 3, 1});
                         at::reflection_pad2d_backward(out, t[0], {1, 2, 3, 1});
                         at::reflection_pad2d_backward(reversed(out), t[0], {1, 2, 3, 1});
                       },
                       [](const Tensors& t) {
                         const at::Tensor out = at::replication_pad2d(t[0], {1, 2, 0, 1});
                         at::replication_pad2d_backward(out, t[0], {1, 2, 0, 1});
                         at::replication_pad2d_backward(reversed(out), t[0], {1, 2, 0, 1});
                       }});
  }
  expectAgreementOn(images(3),
                    {[](const Tensors& t) {
                       const at::Tensor out = at::reflection_pad3d(t[0], {1, 2, 0, 1, 1, 1});
                       at::reflection_pad3d_backward(out, t[0], {1, 2, 0, 1, 1, 1});
                     },
                     [](const Tensors& t) {
                       const at::Tensor out = at::replication_pad3d(t[0], {1, 2, 0, 1, 1, 1});
                       at::replication_pad3d_backward(out, t[0], {1, 2, 0, 1, 1, 1});
                     }});
}

void checkImagePooling() {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    expectAgreementOn(images(2, dtype),
                      {[](const Tensors& t) {
                         const at::Tensor out = at::_adaptive_avg_pool2d(t[0], {3, 2});
                         at::_adaptive_avg_pool2d_backward(out, t[0]);
                         at::_adaptive_avg_pool2d_backward(reversed(out), t[0]);
                       },
                       [](const Tensors& t) {
                         at::_adaptive_avg_pool2d(t[0], {1, 1});
                       },
                       [](const Tensors& t) {
                         const auto [out, where] = at::adaptive_max_pool2d(t[0], {3, 2});
                         at::adaptive_max_pool2d_backward(out, t[0], where);
                       },
                       [](const Tensors& t) {
                         const at::Tensor out = at::avg_pool2d(t[0], {3, 2}, {2, 2}, {1, 0}, true);
                         at::avg_pool2d_backward(out, t[0], {3, 2}, {2, 2}, {1, 0}, true, true, {});
                       },
                       [](const Tensors& t) {
                         const auto [out, where] = at::max_pool2d_with_indices(t[0], {2, 2});
                         at::max_unpool2d(out, where, {4, 6});
                       }});
  }
  expectAgreementOn(
      images(3),
      {[](const Tensors& t) {
         const at::Tensor out = at::_adaptive_avg_pool3d(t[0], {3, 2, 1});
         at::_adaptive_avg_pool3d_backward(out, t[0]);
       },
       [](const Tensors& t) {
         const auto [out, where] = at::adaptive_max_pool3d(t[0], {3, 2, 1});
         at::adaptive_max_pool3d_backward(out, t[0], where);
       },
       [](const Tensors& t) {
         const at::Tensor out = at::avg_pool3d(t[0], {2, 2, 3}, {2, 2, 2}, {1, 0, 0});
         at::avg_pool3d_backward(out, t[0], {2, 2, 3}, {2, 2, 2}, {1, 0, 0}, false, true, {});
       },
       [](const Tensors& t) {
         const auto [out, where] =
             at::max_pool3d_with_indices(t[0], {3, 2, 3}, {2, 2, 2}, {1, 1, 0}, {1, 1, 1}, true);
         at::max_pool3d_with_indices_backward(out, t[0], {3, 2, 3}, {2, 2, 2}, {1, 1, 0}, {1, 1, 1},
                                              true, where);
       },
       [](const Tensors& t) {
         at::max_pool3d_with_indices(t[0], {2, 2, 2}, {}, {0}, {2});
       },
       [](const Tensors& t) {
         const auto [out, where] = at::max_pool3d_with_indices(t[0], {2, 2, 2});
         at::max_unpool3d(out, where, {4, 6, 6}, {2, 2, 2}, {0, 0, 0});
       }});
  expectAgreementOn(images(1), {[](const Tensors& t) { at::avg_pool1d(t[0], {2}); },
                                [](const Tensors& t) { at::adaptive_avg_pool1d(t[0], {3}); },
                                [](const Tensors& t) { at::adaptive_max_pool1d(t[0], {3}); }});
}

void checkSampling() {
  const auto sample2d = [](const Tensors& t) {
    const at::Tensor grid = gridFor(t[0]);
    for (const at::Tensor& places : {grid, reversed(grid)}) {
      const at::Tensor out = at::grid_sampler_2d(t[0], places, 0, 0, false);
      at::grid_sampler_2d_backward(out, t[0], places, 0, 0, false, {true, true});
      at::grid_sampler_2d_backward(out, t[0], places, 0, 0, false, {false, true});
    }
  };
  const auto sample3d = [](const Tensors& t) {
    const at::Tensor grid = gridFor(t[0]);
    const at::Tensor out = at::grid_sampler_3d(t[0], grid, 0, 1, true);
    at::grid_sampler_3d_backward(out, t[0], grid, 0, 1, true, {true, true});
    at::grid_sampler_3d_backward(out, t[0], grid, 0, 1, true, {false, true});
  };
  expectAgreementOn(batchesOf(images(2)), {sample2d});
  expectAgreementOn(batchesOf(images(3)), {sample3d});
  expectAgreementOn(batchesOf(images(2)), {[](const Tensors& t) {
                                             at::upsample_nearest2d(t[0], {8, 9});
                                           },
                                           [](const Tensors& t) {
                                             at::upsample_bilinear2d(t[0], {8, 9}, false);
                                           },
                                           [](const Tensors& t) {
                                             at::upsample_bicubic2d(t[0], {8, 9}, true);
                                           }});
  expectAgreementOn(batchesOf(images(1)),
                    {[](const Tensors& t) { at::upsample_nearest1d(t[0], {9}); },
                     [](const Tensors& t) { at::upsample_linear1d(t[0], {9}, false); }});
}

void checkFoldingAndShuffling() {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    expectAgreementOn(images(2, dtype), {[](const Tensors& t) {
                        const at::Tensor columns = at::im2col(t[0], {3, 2}, {1, 2}, {1, 0}, {2, 1});
                        at::col2im(columns, {4, 6}, {3, 2}, {1, 2}, {1, 0}, {2, 1});
                        at::col2im(reversed(columns), {4, 6}, {3, 2}, {1, 2}, {1, 0}, {2, 1});
                      }});
  }
  expectAgreementOn(images(2), {[](const Tensors& t) { at::pixel_shuffle(t[0], 2); }});
  Tensors filled = images(2);
  filled.pop_back();
  expectAgreementOn(filled, {[](const Tensors& t) { at::pixel_unshuffle(t[0], 2); },
                             [](const Tensors& t) { at::channel_shuffle(t[0].contiguous(), 2); }});
  expectAgreementOn(filled,
                    {[](const Tensors& t) { at::channel_shuffle(t[0], 2); },
                     [](const Tensors& t) { at::native_channel_shuffle(t[0], 2); }},
                    Where::kCpu);
}

TEST(CaptureRules, Padding) { checkPadding(); }
TEST(CaptureRules, ImagePooling) { checkImagePooling(); }
TEST(CaptureRules, Sampling) { checkSampling(); }
TEST(CaptureRules, FoldingAndShuffling) { checkFoldingAndShuffling(); }

}  // namespace stowage::tests
