// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/ops/op_facts.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/capture/ops/operand_rules.h"

namespace stowage::runtime {
namespace {

/// Ops that write every element of their first argument without reading it.
constexpr std::array<std::string_view, 14> kOverwriting = {
    "aten::zero_",          "aten::fill_",   "aten::copy_",      "aten::normal_",
    "aten::uniform_",       "aten::random_", "aten::bernoulli_", "aten::exponential_",
    "aten::log_normal_",    "aten::cauchy_", "aten::geometric_", "aten::_foreach_zero_",
    "aten::_foreach_copy_", "aten::set_data"};

constexpr std::array<std::string_view, 7> kEmptyFactories = {"aten::empty",
                                                             "aten::empty_like",
                                                             "aten::empty_strided",
                                                             "aten::empty_permuted",
                                                             "aten::new_empty",
                                                             "aten::new_empty_strided",
                                                             "aten::_empty_affine_quantized"};

/// Batch norm updates its running statistics in training, which its schema does not say.
struct HiddenWrites {
  std::string_view name;
  uint32_t first, second;
};
constexpr std::array<HiddenWrites, 5> kHiddenWrites = {
    {{"aten::native_batch_norm", 3, 4},
     {"aten::cudnn_batch_norm", 3, 4},
     {"aten::batch_norm_gather_stats", 3, 4},
     {"aten::batch_norm_gather_stats_with_counts", 3, 4},
     {"aten::batch_norm_update_stats", 1, 2}}};

struct Refusal {
  std::string_view name;
  const char* why;
};
constexpr const char* kDataDependent =
    "the shape of its result depends on values, which a static plan cannot hold; use a mask of "
    "fixed size instead (torch.distributions: validate_args=False)";
constexpr const char* kBranches =
    "it turns values into a host decision; compute with the tensor instead (where, clamp)";
constexpr std::array<Refusal, 15> kRefusals = {{
    {"aten::nonzero", kDataDependent},
    {"aten::masked_select", kDataDependent},
    {"aten::unique_dim", kDataDependent},
    {"aten::_unique", kDataDependent},
    {"aten::_unique2", kDataDependent},
    {"aten::unique_consecutive", kDataDependent},
    {"aten::bincount", kDataDependent},
    {"aten::equal", kBranches},
    {"aten::is_nonzero", kBranches},
    {"aten::resize_", "it changes the size of a storage; make a tensor of the final size instead"},
    {"aten::resize_as_",
     "it changes the size of a storage; make a tensor of the final size instead"},
    {"aten::set_", "it moves a tensor to another storage; copy_ the values instead"},
    {"aten::_cudnn_rnn_flatten_weight", "it moves parameters to one storage behind the module"},
    {"aten::record_stream", "streams are chosen by the plan"},
    {"aten::mkldnn_rnn_layer",
     "the size of its workspace is known to oneDNN alone; switch oneDNN off for the whole training "
     "(at::globalContext().setUserEnabledMkldnn(false), in Python "
     "torch.backends.mkldnn.flags(enabled=False))"},
}};

/// Those that can be made of other ops where the size is known (known_sizes.h).
constexpr std::array<std::string_view, 10> kSizedByValues = {
    "aten::_index_put_impl_", "aten::_unique2",         "aten::bincount",      "aten::index",
    "aten::index_put",        "aten::index_put_",       "aten::masked_select", "aten::nonzero",
    "aten::one_hot",          "aten::repeat_interleave"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// "aten::mm" with overload "" -> "aten.mm.default".
std::string irName(const c10::OperatorName& op) {
  std::string name = op.name;
  if (const size_t colons = name.find("::"); colons != std::string::npos) {
    name.replace(colons, 2, ".");
  }
  return name + "." + (op.overload_name.empty() ? "default" : op.overload_name);
}

bool hasMetaKernel(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::Meta) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

ResultsBy findWay(const c10::OperatorHandle& op, ShapeRule rule) {
  if (rule != nullptr) return ResultsBy::kRule;
  if (hasMetaKernel(op)) return ResultsBy::kMeta;
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) {
    return ResultsBy::kComposite;
  }
  return ResultsBy::kNothing;
}

const char* findRefusal(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  for (const Refusal& refusal : kRefusals) {
    if (refusal.name == name) return refusal.why;
  }
  // Of these the rule (or the tracer) sees in the arguments whether the shape is fixed.
  for (const char* sees :
       {"aten::index", "aten::repeat_interleave", "aten::_ctc_loss", "aten::one_hot"}) {
    if (name == sees) return nullptr;
  }
  return op.hasTag(at::Tag::dynamic_output_shape) ? kDataDependent : nullptr;
}

}  // namespace

OpFacts::OpFacts(const c10::OperatorHandle& op) : handle(op), name(irName(op.operator_name())) {
  const std::string& plain = op.operator_name().name;
  bool onlyOut = true;
  const auto& arguments = op.schema().arguments();
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = arguments[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    writtenArguments.push_back(i);
    onlyOut = onlyOut && arguments[i].is_out();
  }
  for (const HiddenWrites& hidden : kHiddenWrites) {
    if (hidden.name == plain) writtenArguments = {hidden.first, hidden.second};
  }
  overwrites = contains(kOverwriting, plain) ||
               (onlyOut && !writtenArguments.empty() && op.schema().is_mutable());
  random = op.hasTag(at::Tag::nondeterministic_seeded);
  readsBack = plain == "aten::_local_scalar_dense";
  emptyFactory = contains(kEmptyFactories, plain);
  changesShape = op.hasTag(at::Tag::inplace_view);
  sizedByValues = contains(kSizedByValues, plain);
  refusal = findRefusal(op);
  if (const NamedRule* found = findShapeRule(name); found != nullptr) {
    rule = found->rule;
    ruleOnlyForCpu = found->onlyForCpu;
  }
  operandRule = findOperandRule(name);
  resultsBy = findWay(op, rule);
  if (resultsBy == ResultsBy::kMeta) cache = std::make_unique<OutputCache>();
}

const OpFacts& OpFactsTable::lookUp(const c10::OperatorHandle& op) {
  std::unique_ptr<OpFacts>& facts = ops_[&op.schema()];
  if (facts == nullptr) facts = std::make_unique<OpFacts>(op);
  return *facts;
}

}  // namespace stowage::runtime
