// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/foreign_files.h"

#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/fuzz/kernel_steps.h"
#include "tests/support/sample_graph.h"
#include "tests/support/small_pt2.h"

namespace stowage::tests {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kKeptPerComplaint = 3;
constexpr size_t kMostRefusal = 64 * 1024;  // bytes that a refusal may print

std::string join(const Arguments& arguments) {
  std::string text = "stowage";
  for (const std::string& argument : arguments) text += " '" + argument + "'";
  return text;
}

/// Numbers, quoted names and names of ops say which mutant, not what went wrong.
std::string withoutDetails(const std::string& text) {
  std::string result;
  bool quoted = false;
  std::stringstream words(text.substr(0, text.find('\n')));
  for (std::string word; words >> word;) {
    const auto quotes = std::count(word.begin(), word.end(), '\'');
    const bool isDetail =
        quoted || quotes > 0 || word.find_first_of("0123456789.(),/_") < word.size() - 1;
    if (quotes % 2 == 1) quoted = !quoted;
    if (!isDetail) result += (result.empty() ? "" : " ") + word;
  }
  return result.substr(0, 120);
}

std::string firstError(const std::string& text) {
  const size_t at = text.find("error: ");
  return at == std::string::npos ? text.substr(0, 200) : text.substr(at, 200);
}

/// Of a text that is UTF-8; the position of the first byte that is not, or that is a control
/// character other than the end of a line.
size_t findUnprintable(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<uint8_t>(text[i]);
    const size_t length = c < 0x80   ? 1
                          : c < 0xc2 ? 0
                          : c < 0xe0 ? 2
                          : c < 0xf0 ? 3
                          : c < 0xf5 ? 4
                                     : 0;
    const bool isControl = (c < 0x20 && c != '\n') || c == 0x7f;
    if (length == 0 || isControl || i + length > text.size()) return i;
    for (size_t k = 1; k < length; ++k) {
      if ((static_cast<uint8_t>(text[i + k]) & 0xc0U) != 0x80U) return i;
    }
    const bool isC1 = c == 0xc2 && static_cast<uint8_t>(text[i + 1]) < 0xa0;
    if (isC1) return i;
    i += length;
  }
  return std::string::npos;
}

/// Models with kinds of ops of their own, as small as they get.
const std::map<std::string, Arguments>& modelSettings() {
  static const std::map<std::string, Arguments> kSettings = {
      {"gpt2",
       {"layers=1", "hidden=16", "heads=2", "sequence=8", "context=8", "vocabulary=16", "batch=2"}},
      {"lstm", {"layers=1", "hidden=8", "sequence=2", "vocabulary=16", "batch=2"}},
      {"vit", {"layers=1", "hidden=16", "heads=2", "batch=2"}},
      {"llama",
       {"layers=1", "hidden=16", "heads=2", "kv_heads=1", "intermediate=16", "sequence=8",
        "vocabulary=16", "batch=2"}}};
  return kSettings;
}

/// The inputs of two steps as a safetensors file: floats of 0.25, `integer`, true.
std::string makeDataFile(const std::string& step, int64_t integer) {
  static const std::regex kInput(
      R"re(\n  input %([^ "]+)(?: "([^"]+)")? : (f32|i64|bool)\[([0-9,]*)\])re");
  static const std::map<std::string, std::string> kNames = {
      {"f32", "F32"}, {"i64", "I64"}, {"bool", "BOOL"}};
  std::string word;  // lowest byte first
  for (size_t i = 0; i < 8; ++i) word += static_cast<char>(integer >> (8 * i));
  const std::map<std::string, std::string> values = {
      {"f32", std::string("\0\0\x80\x3e", 4)}, {"i64", word}, {"bool", "\1"}};
  json header = json::object();
  std::string data;
  for (std::sregex_iterator i(step.begin(), step.end(), kInput), end; i != end; ++i) {
    const std::smatch& input = *i;
    const json shape = json::parse(input[4].length() > 0 ? "[2," + input[4].str() + "]" : "[2]");
    int64_t count = 1;
    for (const json& size : shape) count *= size.get<int64_t>();
    const size_t begin = data.size();
    for (int64_t k = 0; k < count; ++k) data += values.at(input[3]);
    header[input[2].matched ? input[2].str() : input[1].str()] = {
        {"dtype", kNames.at(input[3])}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  std::string length;
  for (size_t i = 0; i < 8; ++i) length += static_cast<char>(text.size() >> (8 * i));
  return length + text + data;
}

}  // namespace

ForeignFiles::ForeignFiles()
    : work_(root_.at("work")),
      server_(
          [&] {
            for (const char* folder : {"work", "outside", "home", "temporary", "bases"}) {
              fs::create_directories(root_.at(folder));
            }
            return STOWAGE_PROGRAM;
          }(),
          STOWAGE_SERVER_LIBRARY, root_.at("home"), root_.at("temporary")) {
  for (const char* file : {"keep.txt", "model.safetensors", "optimizer.safetensors", "step.stow"}) {
    writeText(root_.at("outside/" + std::string(file)), "must stay as it is\n");
  }
}

bool ForeignFiles::must(const Base& base, const Arguments& arguments) {
  const VerbEnd end = server_.run(base.folder, arguments, {.timeoutMs = 120'000});
  EXPECT_EQ(end.code, 0) << base.name << ": " << join(arguments) << '\n' << end.text;
  return end.code == 0;
}

void ForeignFiles::makeArchive(const Base& base) {
  const std::vector<float> values = {1, -2, 3, -4, 5, -6};
  const json weights = {{"config",
                         {{"net.fc.weight",
                           {{"path_name", "weight_0"},
                            {"is_param", true},
                            {"use_pickle", false},
                            {"tensor_meta", tensorMeta(7, {3, 2}, {2, 1})}}}}}};
  writeText(base.folder + "/step.pt2",
            packZip({{"models/model.json", smallStepProgram().dump()},
                     {"archive_format", "pt2"},
                     {"archive_version", "0"},
                     {"data/weights/model_weights_config.json", weights.dump()},
                     {"data/weights/weight_0",
                      {reinterpret_cast<const char*>(values.data()), values.size() * 4}}}));
  writeText(base.folder + "/step.json", smallStepSideFile());
  must(base, {"capture", "step.pt2", "-q", "-o", "step.stow"});
}

/// Captured, and as if it were an archive's, so that a changed step runs: an example model's is
/// captured again and compared.
void ForeignFiles::makeModel(const Base& base) {
  Arguments capture = {"capture", base.name, "-q", "-o", "step.stow"};
  for (const std::string& setting : modelSettings().at(base.name)) {
    capture.insert(capture.end(), {"--set", setting});
  }
  if (!must(base, capture)) return;
  std::string step = base.read("step.stow");
  const size_t begin = step.find("recipe=\"") + 8;
  step.replace(begin, step.find('"', begin) - begin, "step.pt2");
  step.resize(step.rfind("// checksum "));
  writeText(base.folder + "/step.stow", step);
}

void ForeignFiles::makeBase(Base& base) {
  fs::create_directories(base.folder);
  base.runFlags = {"--random-weights"};
  if (base.name == "archive") {
    base.runFlags = {"--lr", "0.01"};
    makeArchive(base);
  } else if (base.name == "sample") {
    std::string step = kSampleGraph;
    step.replace(step.find("target=\"cpu\""), 12, "target=\"cpu\" recipe=\"step.pt2\"");
    // State on the host that a step writes does not run.
    step.erase(step.find(" host"), 5);
    writeText(base.folder + "/step.stow", step.substr(1));
  } else if (base.name == "kernels") {
    base.runFlags = {"--random-weights", "--lr", "0.01"};
    writeText(base.folder + "/step.stow", kKernelStep);
  } else if (base.name == "example") {
    base.runFlags.clear();
    must(base, {"capture", "gpt2", "-q", "-o", "step.stow", "--set", "layers=1", "--set",
                "hidden=16", "--set", "heads=2", "--set", "sequence=8", "--set", "context=8",
                "--set", "vocabulary=16", "--set", "batch=2"});
  } else {
    makeModel(base);
  }
  writeText(base.folder + "/data.safetensors", makeDataFile(base.read("step.stow"), 1));
  writeText(base.folder + "/far.safetensors", makeDataFile(base.read("step.stow"), 10'000'000));
  must(base, {"profile", "step.stow", "-q", "--threads", "1", "-o", "costs.json"});
  must(base, {"plan", "step.stow", "-q", "--threads", "1", "--budget", "80%peak", "--costs",
              "costs.json", "-o", "plan.json"});
  Arguments run = {"run",    "plan.json",  "-q",     "--threads",       "1", "--steps", "2",
                   "--save", "checkpoint", "--data", "data.safetensors"};
  run.insert(run.end(), base.runFlags.begin(), base.runFlags.end());
  must(base, run);
}

const Base& ForeignFiles::base(const std::string& name) {
  const auto found = bases_.find(name);
  if (found != bases_.end()) return found->second;
  Base& made = bases_[name];
  made.name = name;
  made.folder = root_.at("bases/" + name);
  makeBase(made);
  surroundings_ = surroundings();
  return made;
}

ForeignFiles::Listing ForeignFiles::list(const std::string& folder) {
  Listing listing;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, error)) {
    std::string what = "folder";
    if (entry.is_symlink(error)) {
      what = "link";
    } else if (entry.is_regular_file(error)) {
      what = std::to_string(entry.file_size(error)) + " bytes of " +
             std::to_string(entry.last_write_time(error).time_since_epoch().count());
    }
    listing[entry.path().string()] = what;
  }
  return listing;
}

ForeignFiles::Listing ForeignFiles::surroundings() const {
  Listing all;
  for (const char* folder : {"outside", "home", "bases"}) all.merge(list(root_.at(folder)));
  for (const fs::directory_entry& entry : fs::directory_iterator(root_.at(""))) {
    all[entry.path().string()] = "";
  }
  return all;
}

void ForeignFiles::begin(uint64_t seed, const Base& base) {
  fs::remove_all(work_);
  fs::copy(base.folder, work_, fs::copy_options::recursive);
  if (surroundings_.empty()) surroundings_ = surroundings();
  seed_ = seed;
  kind_.clear();
  ran_.clear();
}

void ForeignFiles::write(const std::string& file, const std::string& text) const {
  writeText(at(file), text);
}

/// A file that is there, a file or a flag of the command, or the flag that it lacks.
bool ForeignFiles::namesAPlace(const Arguments& arguments) const {
  const auto isNamed = [&](const std::string& name) {
    return end_.text.find(name) != std::string::npos;
  };
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(work_)) {
    if (isNamed(entry.path().filename().string())) return true;
  }
  if (end_.code == 2 && isNamed(" --")) return true;
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    const bool isFile = argument.find('.') != std::string::npos && argument[0] != '0';
    return (isFile || argument.rfind("--", 0) == 0) && isNamed(argument);
  });
}

void ForeignFiles::judgeRefusal(const Arguments& arguments, const Listing& before) {
  if (!namesAPlace(arguments)) complain(arguments, "refused without a place");
  if (end_.text.size() > kMostRefusal) {
    complain(arguments, "refused with " + std::to_string(end_.text.size()) + " bytes of text");
  }
  const Listing after = list(work_);
  for (const auto& [path, what] : after) {
    const auto old = before.find(path);
    if (old == before.end()) complain(arguments, "refused, and left " + path.substr(work_.size()));
  }
  for (const auto& [path, what] : before) {
    const auto now = after.find(path);
    if (now == after.end() || now->second != what) {
      complain(arguments, "refused, and changed " + path.substr(work_.size()));
    }
  }
}

void ForeignFiles::judge(const Arguments& arguments, const Listing& before) {
  if (end_.timedOut) {
    complain(arguments, "did not end within its time");
  } else if (end_.signal != 0) {
    complain(arguments, std::string("ended by signal ") + strsignal(end_.signal));
  } else if (end_.code > 4) {
    complain(arguments, "ended with exit code " + std::to_string(end_.code));
  } else if (end_.code > 1) {
    judgeRefusal(arguments, before);
  }
  if (findUnprintable(end_.text) != std::string::npos) {
    complain(arguments, "printed bytes that no terminal should get");
  }
  if (!end_.strays.empty()) complain(arguments, "wrote outside of its folder: " + end_.strays);
  const Listing around = surroundings();
  if (around != surroundings_) {
    complain(arguments, "changed what lies outside of its folder");
    surroundings_ = around;
  }
}

bool ForeignFiles::run(const Arguments& arguments, const VerbLimits& limits) {
  const Listing before = list(work_);
  ran_.push_back(arguments);
  complaints_.clear();
  end_ = server_.run(work_, arguments, limits);
  ++codes_[arguments.front() + " " + std::to_string(end_.code)];
  judge(arguments, before);
  return end_.code == 0;
}

void ForeignFiles::runPlan(const std::string& plan, const Arguments& flags) {
  run({"verify", plan});
  const int verified = end_.code;
  const bool knowsCosts = end_.text.find("are not checked") == std::string::npos;
  Arguments arguments = {"run", plan,      "-q", "--threads",
                         "1",   "--steps", "2",  "--compare-unplanned"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  run(arguments);
  if (verified == 1 && end_.code == 0) complain(arguments, "ran what verify refuses");
  // Exit code 1 without "error: " means different bits; an infeasible error prints "error: ".
  const bool differs = end_.code == 1 && end_.text.find("error: ") == std::string::npos;
  if (verified == 0 && knowsCosts && differs) {
    complain(arguments, "verified, and gave other bits than the unplanned step");
  }
}

std::string ForeignFiles::keep(const Arguments& arguments, const std::string& what) const {
  const char* asked = std::getenv("STOWAGE_FUZZ_KEEP");
  const std::string parent = asked != nullptr ? asked : STOWAGE_BINARY_DIR "/fuzz_kept";
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = parent + "/" + info->name() + "_" + std::to_string(seed_);
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  fs::copy(work_, folder, fs::copy_options::recursive | fs::copy_options::skip_symlinks, error);
  std::string script = "# " + what + "\ncd " + folder + "\n";
  for (const Arguments& earlier : ran_) script += join(earlier) + "\n";
  if (ran_.empty()) script += join(arguments) + "\n";
  writeText(folder + "/commands.sh", script);
  writeText(folder + "/printed.txt", end_.text);
  return folder;
}

void ForeignFiles::complain(const Arguments& arguments, const std::string& what) {
  complaints_.push_back(what);
  if (!reports_) return;
  const std::string signature = arguments.front() + ": " + withoutDetails(what) + " | " +
                                withoutDetails(firstError(end_.text));
  if (++seen_[signature] > kKeptPerComplaint) return;
  const std::string folder = keep(arguments, what);
  ADD_FAILURE() << "seed " << seed_ << ", " << kind_ << ": " << what << "\n  cd " << folder
                << " && " << join(arguments) << "\n"
                << end_.text.substr(0, 600);
}

void ForeignFiles::forgetSummary() {
  seen_.clear();
  codes_.clear();
}

std::string ForeignFiles::summary() const {
  std::string text;
  for (const auto& [code, count] : codes_) {
    text += (text.empty() ? "" : ", ") + code + ": " + std::to_string(count);
  }
  text += "\n";
  for (const auto& [what, count] : seen_) text += std::to_string(count) + " x " + what + "\n";
  return text;
}

}  // namespace stowage::tests
