// SPDX-License-Identifier: Apache-2.0
//
// Ops of signals, complex numbers and linear algebra in a small training: with the bits of plain
// libtorch at a generous and at a tight budget, or refused by name, with what to do instead.

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/rnn.h>
#include <torch/optim/lbfgs.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/torch/torch_version.h"
#include "tests/support/session_training.h"

namespace stowage::tests {
namespace {

constexpr int kSteps = 4;

/// From the network's output [6, 4] to something real.
using Middle = std::function<Tensor(const Tensor& hidden)>;

Description describe(Training& training, const Middle& middle) {
  Description description = training.describe();
  description.loss = [&training, middle](const Tensor& x, const Tensor& /*y*/) {
    // Not symmetric: a sign that is wrong shows.
    Tensor loss = (middle(training.model->forward(x)) + 1).square().mean();
    loss.backward();
    return loss;
  };
  return description;
}

/// [6, 2] complex numbers.
Tensor complexOf(const Tensor& hidden) { return at::view_as_complex(hidden.reshape({6, 2, 2})); }
Tensor realOf(const Tensor& complex) { return at::view_as_real(complex); }
Tensor angles() { return at::polar(at::ones({6, 2}), at::arange(12).view({6, 2}) * 0.1); }
/// [4, 4], symmetric with positive eigenvalues.
Tensor definite(const Tensor& hidden) { return hidden.t().mm(hidden) + 2 * at::eye(4); }

Tensor spectrogram(const Tensor& signal, bool center) {
  return at::stft(signal, 8, 2, 8, at::hann_window(8), center, "reflect", false, true, true);
}

struct OpCase {
  const char* name;
  Middle middle;
  std::vector<std::string> says = {};  // of a refusal
};

void PrintTo(const OpCase& op, std::ostream* os) { *os << op.name; }

/// From 2.15 on, libtorch looks at ranks on the host where all numbers are one row.
std::vector<std::string> saidOfQuantileOfAll() {
  if (runtime::torchVersion() == std::string("2.11.0")) return {};
  return {"aten.quantile", "one row", "sort()"};
}

/// The smallest of a few budgets below what keeping everything takes that there is a plan for.
ir::Expected<Plan> planTightly(const Step& step, Bytes keepAll) {
  for (const int64_t percent : {50, 60, 70, 80, 90}) {
    ir::Expected<Plan> made = plan(step, {.budget = Bytes(keepAll.value() * percent / 100)});
    if (made) return made;
    llvm::consumeError(made.takeError());
  }
  return plan(step, {.budget = keepAll});
}

void expectSameAs(Training& eager, const Middle& middle, bool tightly) {
  Training captured;
  const Step step = capture(describe(captured, middle));
  ir::Expected<Plan> made = plan(step, {.budget = 1_MiB});
  if (tightly && made) made = planTightly(step, made->keepAll());
  Runner runner = Runner::create(made, step);
  train(runner, captured, 0, kSteps);
  runner.storeTo(captured.model);
  expectSame(eager, captured);
}

class SessionOps : public testing::TestWithParam<OpCase> {};

TEST_P(SessionOps, TrainAsPlainLibtorchOrAreRefusedByName) {
  const Middle& middle = GetParam().middle;
  Training eager;
  trainEagerly(eager, describe(eager, middle), 0, kSteps);
  if (GetParam().says.empty()) {
    expectSameAs(eager, middle, false);
    expectSameAs(eager, middle, true);
    return;
  }
  Training captured;
  const Failed failed = failureOf([&] { capture(describe(captured, middle)); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text, GetParam().says);
}

const std::vector<int64_t> kTokens = {3, 3}, kLetters = {2, 1};

INSTANTIATE_TEST_SUITE_P(
    Signals, SessionOps,
    testing::Values(
        OpCase{"rfft", [](const Tensor& h) { return realOf(at::fft_rfft(h)); }},
        OpCase{"rfft_of_columns", [](const Tensor& h) { return at::fft_rfft(h, 5, 0).abs(); }},
        OpCase{"irfft", [](const Tensor& h) { return at::fft_irfft(at::fft_rfft(h) * 2); }},
        OpCase{"fft", [](const Tensor& h) { return realOf(at::fft_fft(h)); }},
        OpCase{"fft2", [](const Tensor& h) { return realOf(at::fft_fft2(h)); }},
        OpCase{"ifft", [](const Tensor& h) { return realOf(at::fft_ifft(complexOf(h))); }},
        OpCase{"irfft2", [](const Tensor& h) { return at::fft_irfft2(at::fft_rfft2(h)); }},
        OpCase{"hfft", [](const Tensor& h) { return at::fft_hfft(complexOf(h)); }},
        OpCase{"fftconv",
               [](const Tensor& h) {
                 return at::fft_irfft(at::fft_rfft(h, 8) * at::fft_rfft(h.flip({1}), 8), 8);
               }},
        OpCase{"stft", [](const Tensor& h) { return realOf(spectrogram(h.flatten(), false)); }},
        OpCase{"stft_centered", [](const Tensor& h) { return spectrogram(h.t(), true).abs(); }},
        OpCase{"istft",
               [](const Tensor& h) {
                 return at::istft(spectrogram(h.flatten(), true), 8, 2, 8, at::hann_window(8));
               }},
        OpCase{"rot90", [](const Tensor& h) { return at::rot90(h) * h.t(); }},
        OpCase{"quantile", [](const Tensor& h) { return at::quantile(h, 0.3, 1); }},
        OpCase{"quantile_of_all", [](const Tensor& h) { return h - at::quantile(h, 0.5); },
               saidOfQuantileOfAll()},
        OpCase{"quantiles",
               [](const Tensor& h) {
                 return at::quantile(h, at::tensor({0.25f, 0.8f}), 0, true);
               }},
        OpCase{"nanquantile", [](const Tensor& h) { return at::nanquantile(h, 0.7, 0); }},
        OpCase{"ctc_loss_of_numbers",
               [](const Tensor& h) {
                 return at::ctc_loss(h.reshape({3, 2, 4}).log_softmax(-1),
                                     at::ones({2, 2}, at::kLong), kTokens, kLetters);
               }},
        OpCase{"ctc_loss_of_tensors",
               [](const Tensor& h) {
                 return at::ctc_loss(h.reshape({3, 2, 4}).log_softmax(-1),
                                     at::ones({2, 2}, at::kLong), at::full({2}, 3, at::kLong),
                                     at::ones({2}, at::kLong));
               },
               {"ctc_loss", "as numbers"}}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Complex, SessionOps,
    testing::Values(
        OpCase{"rope", [](const Tensor& h) { return realOf(complexOf(h) * angles()); }},
        OpCase{"polar", [](const Tensor& h) { return realOf(at::polar(h.abs() + 1, h)); }},
        OpCase{"complex", [](const Tensor& h) { return realOf(at::complex(h, h * 2) * 3); }},
        OpCase{"conj", [](const Tensor& h) { return realOf(complexOf(h).conj() * angles()); }},
        OpCase{"conj_alone",
               [](const Tensor& h) { return realOf(complexOf(h).conj().resolve_conj()); }},
        OpCase{"conj_of_a_view",
               [](const Tensor& h) {
                 return realOf(complexOf(h).conj().t().slice(1, 1, 5).contiguous());
               }},
        OpCase{"conj_physical",
               [](const Tensor& h) { return realOf(complexOf(h).conj_physical()); }},
        OpCase{"conj_of_a_constant",
               [](const Tensor& h) { return realOf(complexOf(h) * angles().conj()); }},
        OpCase{
            "imag_of_conj",
            [](const Tensor& h) { return at::imag(complexOf(h).conj()) * at::real(complexOf(h)); }},
        OpCase{"written_into_conj",
               [](const Tensor& h) {
                 const Tensor room = at::zeros({6, 2}, at::kComplexFloat);
                 room.conj().copy_(complexOf(h));
                 return realOf(room * angles());
               }},
        OpCase{"added_into_conj",
               [](const Tensor& h) {
                 const Tensor room = complexOf(h) * 2;
                 room.conj().add_(angles());
                 return realOf(room);
               }},
        OpCase{"norm", [](const Tensor& h) { return complexOf(h).abs(); }},
        OpCase{"angle", [](const Tensor& h) { return complexOf(h).angle(); }},
        OpCase{"power", [](const Tensor& h) { return realOf(complexOf(h).pow(2).exp()); }},
        OpCase{"complex_matrices",
               [](const Tensor& h) { return realOf(complexOf(h).mm(complexOf(h).t())); },
               {"aten.mm.default", "backward", "resolve_conj()", "real and imaginary parts"}},
        OpCase{"conj_of_a_matrix",
               [](const Tensor& h) {
                 return realOf(complexOf(h).detach().conj().mm(angles().t())) * h.sum();
               },
               {"aten.mm.default", "forward", "resolve_conj()"}}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    LinearAlgebra, SessionOps,
    testing::Values(
        OpCase{"weight_norm",
               [](const Tensor& h) { return at::_weight_norm(h, h.narrow(1, 0, 1) + 1, 0); }},
        OpCase{"weight_norm_of_columns",
               [](const Tensor& h) { return at::_weight_norm(h, h.narrow(0, 0, 1) + 1, 1); }},
        OpCase{"cholesky", [](const Tensor& h) { return at::linalg_cholesky(definite(h)); }},
        OpCase{
            "cholesky_ex",
            [](const Tensor& h) { return std::get<0>(at::linalg_cholesky_ex(definite(h), true)); }},
        OpCase{"qr", [](const Tensor& h) { return std::get<1>(at::linalg_qr(definite(h))); }},
        OpCase{"qr_of_a_tall_matrix",
               [](const Tensor& h) {
                 const auto [q, r] = at::linalg_qr(h + at::eye(6, 4));
                 return q.mm(r.t().mm(r));
               }},
        OpCase{"solve_triangular",
               [](const Tensor& h) {
                 return at::linalg_solve_triangular(definite(h), h.t(), /*upper=*/false);
               }},
        OpCase{"inverse", [](const Tensor& h) { return at::linalg_inv(definite(h)); }},
        OpCase{"solve", [](const Tensor& h) { return at::linalg_solve(definite(h), h.t()); }},
        OpCase{"logdet", [](const Tensor& h) { return at::logdet(definite(h)); }},
        OpCase{"eigh", [](const Tensor& h) { return std::get<0>(at::linalg_eigh(definite(h))); }},
        OpCase{"matrix_exp", [](const Tensor& h) { return at::matrix_exp(definite(h) * 0.1); }},
        OpCase{"pdist", [](const Tensor& h) { return at::pdist(h); }},
        OpCase{"pdist_1", [](const Tensor& h) { return at::pdist(h, 1); }},
        OpCase{"cdist", [](const Tensor& h) { return at::cdist(h, h.flip({0}) + 1); }},
        OpCase{"logit", [](const Tensor& h) { return at::logit(h.sigmoid()); }},
        OpCase{"cumprod",
               [](const Tensor& h) { return at::cumprod(h, 1); },
               {"backward of cumprod()", "exp(cumsum(log(x)))", "backward"}},
        OpCase{"prod",
               [](const Tensor& h) { return at::prod(h, 1); },
               {"backward of prod()", "item()", "multiply slices"}},
        OpCase{"prod_of_all",
               [](const Tensor& h) { return at::prod(h); },
               {"aten.nonzero.default", "backward of prod()", "multiply slices"}},
        OpCase{"index_by_a_mask",
               [](const Tensor& h) { return h.index({h > 0}); },
               {"aten.index.Tensor", "values of a mask", "where()"}}),
    [](const auto& info) { return std::string(info.param.name); });

// libtorch asks it of the values; a plan asks in every step. From 2.15 on libtorch reads them.
TEST(SessionOpsBeside, AQuantileBeyondOneFailsInTheStepThatAsksForIt) {
  Training captured;
  Description description = captured.describe();
  description.loss = [&](const Tensor& x, const Tensor& y) {
    const Tensor hidden = captured.model->forward(x);
    const Tensor loss = at::quantile(hidden, y.select(0, 0).to(at::kFloat));
    loss.backward();
    return loss;
  };
  if (runtime::torchVersion() != std::string("2.11.0")) {
    const Failed refused = failureOf([&] { capture(description); });
    expectSays(refused.text, {"aten.quantile", "reads q on the host", "pass q as a number"});
    return;
  }
  const Step step = capture(description);
  Runner runner = makeRunner(step);
  train(runner, captured, 0, 2);
  const auto [x, y] = makeBatch(2);
  const Failed failed = failureOf([&, x = x, y = y] { runner(x, y + 2); });
  expectSays(failed.text, {"quantile() q values must be in the range [0, 1]"});
}

// What a batch looks like when it was made by conj(): its bytes are not its numbers.
TEST(SessionOpsBeside, ABatchThatIsALazyViewIsTakenByItsNumbers) {
  using Batch = StepDescription<Tensor>;
  const auto describeComplex = [](Training& training) {
    return Batch{.loss =
                     [&](const Tensor& z) {
                       const Tensor loss =
                           training.model->forward(at::view_as_real(z).flatten(1)).square().mean();
                       loss.backward();
                       return loss;
                     },
                 .update = [&] { training.update(); },
                 .module = training.model,
                 .optimizer = training.optimizer.get()};
  };
  const Tensor z = at::polar(at::ones({6, 4}), at::arange(24).view({6, 4}) * 0.1);
  Training eager;
  const Batch plain = describeComplex(eager);
  for (int i = 0; i < kSteps; ++i) {
    eager.losses.push_back(plain.loss(z.conj().resolve_conj()).item<float>());
    plain.update();
  }
  Training captured;
  const Step step = stowage::capture(describeComplex(captured), z);
  Runner runner = makeRunner(step);
  for (int i = 0; i < kSteps; ++i) captured.losses.push_back(runner(z.conj()).item<float>());
  runner.storeTo(captured.model);
  expectSame(eager, captured);
}

// --- modules and optimizers ---------------------------------------------------------------------

/// The failure of capturing `module`'s forward on indices or numbers.
template <typename Module, typename Forward>
Failed failureOfModule(Module module, Forward forward, const Tensor& example) {
  torch::optim::SGD optimizer(module->parameters(), 0.1);
  const StepDescription<Tensor> description{.loss =
                                                [&](const Tensor& x) {
                                                  const Tensor loss = forward(module, x).mean();
                                                  loss.backward();
                                                  return loss;
                                                },
                                            .update =
                                                [&] {
                                                  optimizer.step();
                                                  optimizer.zero_grad();
                                                },
                                            .module = module,
                                            .optimizer = &optimizer};
  return failureOf([&] { stowage::capture(description, example); });
}

TEST(SessionOpsBeside, ASparseEmbeddingIsRefusedWithItsOption) {
  torch::nn::Embedding embedding(torch::nn::EmbeddingOptions(8, 4).sparse(true));
  const auto forward = [](auto& module, const Tensor& x) { return module->forward(x); };
  const Failed failed = failureOfModule(embedding, forward, at::arange(6));
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text,
             {"aten.embedding.default", "sparse gradient", "EmbeddingOptions::sparse(false)"});
}

TEST(SessionOpsBeside, AnLstmThatOneDnnWouldRunIsRefusedWithTheSwitch) {
  if (!at::globalContext().userEnabledMkldnn()) GTEST_SKIP() << "oneDNN is off in this process";
  const auto forward = [](auto& module, const Tensor& x) {
    return std::get<0>(module->forward(x));
  };
  const Failed failed = failureOfModule(torch::nn::LSTM(4, 5), forward, at::rand({3, 2, 4}));
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text,
             {"aten.mkldnn_rnn_layer.default", "setUserEnabledMkldnn(false)", "oneDNN"});
}

TEST(SessionOpsBeside, AnLstmWithoutOneDnnTrainsAsPlainLibtorch) {
  at::globalContext().setUserEnabledMkldnn(false);
  const auto makeLstm = [] {
    torch::manual_seed(5);
    return torch::nn::LSTM(8, 3);
  };
  const auto run = [](torch::nn::LSTM lstm, bool planned) {
    auto optimizer = adamW(lstm->parameters());
    const Description description{
        .loss =
            [&](const Tensor& x, const Tensor& /*y*/) {
              const auto out = std::get<0>(lstm->forward(x.view({3, 2, 8})));
              const Tensor loss = out.square().mean();
              loss.backward();
              return loss;
            },
        .update =
            [&] {
              optimizer->step();
              optimizer->zero_grad();
            },
        .module = lstm,
        .optimizer = optimizer.get()};
    if (planned) {
      const Step step = capture(description);
      Runner runner = makeRunner(step);
      for (int i = 0; i < kSteps; ++i) {
        const auto [x, y] = makeBatch(i);
        runner(x, y);
      }
      runner.storeTo(lstm);
    } else {
      for (int i = 0; i < kSteps; ++i) {
        const auto [x, y] = makeBatch(i);
        description.loss(x, y);
        description.update();
      }
    }
    return lstm->parameters();
  };
  const std::vector<Tensor> eager = run(makeLstm(), false), planned = run(makeLstm(), true);
  at::globalContext().setUserEnabledMkldnn(true);
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(sameBits(eager[i], planned[i])) << i;
}

TEST(SessionOpsBeside, LbfgsIsRefusedWithWhatToTrainWith) {
  Training captured;
  torch::optim::LBFGS optimizer(captured.model->parameters());
  Description description = captured.describe();
  description.optimizer = &optimizer;
  const Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text, {"optimizer LBFGS", "plain libtorch", "AdamW"});
}

}  // namespace
}  // namespace stowage::tests
