// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/models/model.h"
#include "tools/models/random_values.h"
#include "tools/models/recipe.h"

namespace stowage::tools {
namespace {

const std::vector<Model>& models() {
  static const std::vector<Model> kModels = {gpt2(), llama(), llamaLora(), vit(), resnet(), lstm()};
  return kModels;
}

}  // namespace

const std::vector<ModelInfo>& modelCatalogue() {
  static const std::vector<ModelInfo> kCatalogue = [] {
    std::vector<ModelInfo> infos;
    for (const Model& model : models()) infos.push_back(model.info);
    return infos;
  }();
  return kCatalogue;
}

ir::Expected<TrainingStep> makeTrainingStep(std::string_view name,
                                            const std::vector<std::string>& settings,
                                            c10::Device device) {
  std::vector<std::string> names;
  for (const Model& model : models()) {
    names.push_back(model.info.name);
    if (model.info.name != name) continue;
    ir::Expected<Settings> values = parseSettings(model.info, settings);
    if (!values) return values.takeError();
    return model.make(*values, device);
  }
  return unknownName("model", name, names);
}

std::vector<at::Tensor> makeInputs(const std::vector<TrainingStep::Input>& wanted, uint64_t seed,
                                   c10::Device device) {
  constexpr uint64_t kSeeds = 1'000'003;  // of one batch
  std::vector<at::Tensor> inputs;
  for (const TrainingStep::Input& input : wanted) {
    const int64_t below = input.upperBound > 0 ? input.upperBound : input.drawBelow;
    const uint64_t own = seed * kSeeds + inputs.size();
    const at::Tensor values =
        c10::isIntegralType(input.dtype, /*includeBool=*/true)
            ? drawIntegers(input.sizes, input.dtype, own, std::max<int64_t>(below, 1))
            : drawNormal(input.sizes, input.dtype, own);
    inputs.push_back(values.to(device));
  }
  return inputs;
}

}  // namespace stowage::tools
