// SPDX-License-Identifier: Apache-2.0
#include "tools/models/settings.h"

#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <fstream>

#include "tools/models/model.h"

namespace stowage::tools {
namespace {

ModelInfo makeInfo() {
  using Kind = SettingInfo::Kind;
  return {.name = "toy",
          .description = "",
          .settings = {{"layers", Kind::kInteger, "2", "", "", {}, 1, 100},
                       {"rate", Kind::kNumber, "0.5", "", "", {}, 0, 1},
                       {"tied", Kind::kChoice, "off", "", "", {"off", "on"}}},
          .presets = {{"tiny", "", {}}, {"wide", "", {{"layers", "7"}, {"tied", "on"}}}}};
}

std::string messageOf(ir::Error error) {
  const ir::PlanError payload = ir::takePayload(std::move(error));
  EXPECT_EQ(payload.code(), ir::ErrorCode::kInvalidArgument);
  std::string text = payload.text();
  for (const std::string& note : payload.notes()) text += "; " + note;
  return text;
}

std::string refusalOf(const std::vector<std::string>& texts) {
  ir::Expected<Settings> settings = parseSettings(makeInfo(), texts);
  return settings ? "accepted" : messageOf(settings.takeError());
}

TEST(ModelSettings, DefaultThenPresetThenText) {
  const Settings defaults = llvm::cantFail(parseSettings(makeInfo(), {}));
  EXPECT_EQ(defaults.integer("layers"), 2);
  EXPECT_EQ(defaults.number("rate"), 0.5);
  EXPECT_FALSE(defaults.isOn("tied"));
  EXPECT_FALSE(defaults.isAskedFor("layers"));

  for (const std::vector<std::string>& texts : std::vector<std::vector<std::string>>{
           {"preset=wide", "layers=9"}, {"layers=9", "preset=wide"}}) {
    const Settings settings = llvm::cantFail(parseSettings(makeInfo(), texts));
    EXPECT_EQ(settings.integer("layers"), 9);
    EXPECT_TRUE(settings.isOn("tied"));
    EXPECT_TRUE(settings.isAskedFor("layers"));
    EXPECT_FALSE(settings.isAskedFor("tied"));
  }
}

TEST(ModelSettings, RefusesWithWhatWasFoundAndWhatExists) {
  EXPECT_EQ(refusalOf({"layer=3"}),
            "no setting of toy is called 'layer', did you mean 'layers'; "
            "there are: layers, rate, tied, preset");
  EXPECT_EQ(refusalOf({"colour=red"}),
            "no setting of toy is called 'colour'; there are: layers, rate, tied, preset");
  EXPECT_EQ(refusalOf({"preset=wie"}),
            "no preset of toy is called 'wie', did you mean 'wide'; there are: tiny, wide");
  EXPECT_EQ(refusalOf({"tied=yes"}), "no value of tied is called 'yes'; there are: off, on");
  EXPECT_EQ(refusalOf({"layers"}), "found 'layers', expected key=value");
  EXPECT_EQ(refusalOf({"=3"}), "found '=3', expected key=value");
  EXPECT_EQ(refusalOf({"layers=3", "layers=3"}), "layers is set twice, expected once");
  EXPECT_EQ(refusalOf({"preset=tiny", "preset=wide"}), "preset is set twice, expected once");
}

TEST(ModelSettings, RefusesOtherKindsAndValuesOutsideOfTheLimits) {
  for (const char* value :
       {"", "two", "2.5", "2x", " 2", "0", "-1", "101", "99999999999999999999"}) {
    EXPECT_EQ(refusalOf({std::string("layers=") + value}),
              "layers is '" + std::string(value) + "', expected an integer from 1 to 100");
  }
  for (const char* value : {"", "half", "nan", "inf", "1.5", "-0.1", "0.5s"}) {
    EXPECT_EQ(refusalOf({std::string("rate=") + value}),
              "rate is '" + std::string(value) + "', expected a number from 0 to 1");
  }
}

TEST(ModelSettings, NumbersAreFinite) {
  ModelInfo info = makeInfo();
  info.settings.push_back({"lr", SettingInfo::Kind::kNumber, "1", "", ""});
  for (const char* value : {"inf", "nan", "-inf", "1e400"}) {
    ir::Expected<Settings> settings = parseSettings(info, {std::string("lr=") + value});
    ASSERT_FALSE(bool(settings)) << value;
    EXPECT_EQ(messageOf(settings.takeError()),
              "lr is '" + std::string(value) + "', expected a number at least 0");
  }
}

TEST(ModelSettings, EveryDefaultAndPresetOfTheCatalogueIsValid) {
  for (const ModelInfo& model : modelCatalogue()) {
    ASSERT_FALSE(model.presets.empty());
    EXPECT_TRUE(model.presets[0].values.empty()) << "the first preset names the defaults";
    std::vector<std::string> defaults;
    for (const SettingInfo& info : model.settings) {
      defaults.push_back(info.name + "=" + info.value);
      EXPECT_FALSE(info.meaning.empty()) << info.name;
    }
    EXPECT_TRUE(bool(parseSettings(model, defaults))) << model.name;
    for (const Preset& preset : model.presets) {
      std::vector<std::string> texts;
      for (const auto& [name, value] : preset.values) texts.push_back(name + "=" + value);
      ir::Expected<Settings> settings = parseSettings(model, texts);
      EXPECT_TRUE(bool(settings)) << model.name << " " << preset.name;
      if (!settings) ADD_FAILURE() << messageOf(settings.takeError());
    }
  }
}

/// The lines of the README's tables that begin with `name` or with "all models".
std::string tableRowsOf(const std::string& name) {
  std::ifstream file(std::string(STOWAGE_SOURCE_DIR) + "/tools/models/README.md");
  std::string rows, line;
  bool isShared = false;
  while (std::getline(file, line)) {
    if (!line.starts_with("|")) isShared = false;
    if (line.starts_with("| all models |")) isShared = true;
    if (isShared || line.starts_with("| `" + name + "` |")) rows += line + "\n";
  }
  return rows;
}

TEST(ModelSettings, TheReadmeListsThemAllWithTheirDefaults) {
  for (const ModelInfo& model : modelCatalogue()) {
    std::string rows = tableRowsOf(model.name);
    if (model.name == "llama_lora") rows += tableRowsOf("llama");
    for (const SettingInfo& info : model.settings) {
      const std::string text = "`" + info.name + "=" + info.value + "`";
      EXPECT_NE(rows.find(text), std::string::npos) << model.name << " " << text;
    }
    for (const Preset& preset : model.presets) {
      EXPECT_NE(rows.find("`" + preset.name + "`"), std::string::npos) << preset.name;
    }
  }
}

struct Refusal {
  const char* model;
  std::vector<std::string> settings;
  const char* message;
};

TEST(ModelSettings, ModelsRefuseWhatDoesNotGoTogether) {
  const Refusal refusals[] = {
      {"gpt3",
       {},
       "no model is called 'gpt3', did you mean 'gpt2'; "
       "there are: gpt2, llama, llama_lora, vit, resnet, lstm"},
      {"gpt2", {"heads=5"}, "hidden is 128 and heads is 5, expected a multiple of it"},
      {"gpt2", {"sequence=65"}, "sequence is 65 and context is 64, expected at most that"},
      {"gpt2", {"micro_batches=3"}, "batch is 4 and micro_batches is 3, expected a multiple of it"},
      {"llama", {"kv_heads=3"}, "heads is 4 and kv_heads is 3, expected a multiple of it"},
      {"llama",
       {"hidden=12"},
       "hidden / heads is 3, expected an even number: rotary positions turn pairs"},
      {"llama", {"lora_rank=4"}, "no setting of llama is called 'lora_rank'"},
      {"llama_lora",
       {"quantise=nf4", "hidden=96"},
       "hidden is 96 and quantise is nf4, expected a multiple of 64: so many weights share a "
       "scale"},
      {"vit", {"patch=5"}, "image is 32 and patch is 5, expected a multiple of it"},
      {"resnet",
       {"micro_batches=8"},
       "batch / micro_batches is 1, expected at least 2: batch norm needs a variance"},
      {"lstm", {"momentum=0.5"}, "momentum is set and optimizer is adamw, expected optimizer=sgd"},
      {"lstm", {"warmup=5"}, "warmup is set and schedule is none, expected schedule=cosine"},
      {"gpt2",
       {"batch=99999999999999"},
       "batch is 99999999999999 and sequence is 64 and vocabulary is 256, expected tensors of at "
       "most 2^40 elements"},
      {"llama", {"layers=10001"}, "layers is '10001', expected an integer from 1 to 10000"},
      {"llama", {"sequence=2000000"}, "sequence is 2000000, expected tensors of at most 2^40"},
      {"llama_lora", {"lora_rank=99999999999"}, "lora_rank is 99999999999 and intermediate is 352"},
      {"vit", {"image=99999999999999", "patch=99999999999999"}, "hidden is 128 and patch is 9999"},
      {"vit", {"image=33554432", "patch=1", "batch=1", "hidden=4"}, "batch is 1 and hidden is 4"},
      {"resnet", {"image=99999999999999"}, "batch is 8 and width is 16 and image is 9999"},
      {"lstm", {"hidden=99999999999999"}, "vocabulary is 256 and hidden is 99999999999999"},
      {"lstm",
       {"optimizer=stowage_adamw", "master_weights=on"},
       "master_weights is set and precision is float32, expected precision=bfloat16"},
  };
  for (const auto& [model, settings, message] : refusals) {
    ir::Expected<TrainingStep> step = makeTrainingStep(model, settings);
    ASSERT_FALSE(bool(step)) << model << " " << (settings.empty() ? "" : settings[0]);
    EXPECT_EQ(messageOf(step.takeError()).substr(0, std::string_view(message).size()), message);
  }
}

}  // namespace
}  // namespace stowage::tools
