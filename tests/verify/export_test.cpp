// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "accrue/data/tensor_file.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/verify/models.h"

namespace accrue {
namespace {

using testing::HasSubstr;

struct Checked {
  int exit_code;
  std::string output;
};

/// Runs tools/check_export.py, or nothing if there is no Python with PyTorch.
std::optional<Checked> check_export(const std::string& folders) {
  const std::string python = ACCRUE_SOURCE_DIR "/.venv/bin/python";
  if (!std::filesystem::exists(python)) return std::nullopt;
  const std::string command = python + " " ACCRUE_SOURCE_DIR "/tools/check_export.py " + folders + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> piece{};
  while (fgets(piece.data(), piece.size(), pipe) != nullptr) output += piece.data();
  return Checked{WEXITSTATUS(pclose(pipe)), output};
}

Verdict export_to(const std::string& folder, const Model& model, const Loss& loss, const Batch& batch,
                  const ExportDescription& description) {
  Evidence evidence;
  VerifyOptions options;
  options.micro_batch = 5;
  options.evidence = &evidence;
  Verdict verdict = verify(model, loss, batch, options);
  export_verification(folder, evidence, verdict, description);
  return verdict;
}

ExportDescription small_mlp() {
  return {.task = "regression", .loss = "mse", .model = "mlp", .sizes = {4, 16, 2}, .activation = "relu"};
}

TEST(Export, WritesFilesThatHoldWhatTheModelSaw) {
  const std::string folder = test::fresh_folder() + "/made/here";
  const auto net = test::small_net();
  const Batch batch = test::rows_of(12, 4, 2);
  const Verdict verdict = export_to(folder, test::view_of(net), mse_loss(), batch, small_mlp());
  EXPECT_EQ(verdict.outcome, Outcome::equal);
  const NamedTensors fields = load_tensors(folder + "/batch.safetensors", Purpose::data);
  EXPECT_TRUE(test::same_bits(fields["x"], batch["x"]));
  EXPECT_TRUE(test::same_bits(fields["y"], batch["y"]));
  const NamedTensors parameters = load_tensors(folder + "/parameters.safetensors", Purpose::data);
  EXPECT_TRUE(test::same_bits(parameters["2.weight"], net->named_parameters()["2.weight"]));
  const NamedTensors whole = load_tensors(folder + "/gradients_whole.safetensors", Purpose::data);
  const NamedTensors split = load_tensors(folder + "/gradients_split.safetensors", Purpose::data);
  EXPECT_EQ(whole.size(), 4);
  EXPECT_EQ(whole["0.bias"].scalar_type(), at::kFloat);
  // Already divided: the gradient of the mean.
  const double apart = test::relative_distance(split["0.weight"], whole["0.weight"]);
  EXPECT_NEAR(apart, verdict.parameters[0].relative_difference, 1e-9);
  at::mse_loss(test::view_of(net).forward(batch).tensor(), batch["y"]).backward();
  EXPECT_TRUE(test::close(whole["0.weight"], net->named_parameters()["0.weight"].grad(), 1e-6));

  const nlohmann::json manifest = nlohmann::json::parse(test::read_file(folder + "/manifest.json"));
  EXPECT_EQ(manifest["task"], "regression");
  EXPECT_EQ(manifest["loss"]["kind"], "mse");
  EXPECT_EQ(manifest["model"]["kind"], "mlp");
  EXPECT_EQ(manifest["model"]["sizes"], (std::vector<int>{4, 16, 2}));
  EXPECT_EQ(manifest["model"]["activation"], "relu");
  EXPECT_EQ(manifest["samples"], 12);
}

TEST(Export, NamesAFolderThatCannotBeMade) {
  const std::string file = test::write_file(test::fresh_folder() + "/file", "x");
  EXPECT_ERROR(
      export_verification(file + "/folder", {}, {}, {}), StateError,
      file + "/folder: the folder for the exported files cannot be made: Not a directory; name another one");
}

void export_mlp(const std::string& folder, const std::string& activation) {
  const Model model =
      adapt(test::small_net(), [activation](torch::nn::Sequential& self, const MicroBatch& micro) {
        const auto named = self->named_parameters();
        at::Tensor x = at::linear(micro["x"], named["0.weight"], named["0.bias"]);
        if (activation == "relu") x = at::relu(x);
        if (activation == "gelu") x = at::gelu(x);
        if (activation == "gelu_tanh") x = at::gelu(x, "tanh");
        if (activation == "tanh") x = at::tanh(x);
        if (activation == "silu") x = at::silu(x);
        return at::linear(x, named["2.weight"], named["2.bias"]);
      });
  ExportDescription description = small_mlp();
  description.activation = activation;
  export_to(folder, model, mse_loss(), test::rows_of(12, 4, 2), description);
}

void export_classifier(const std::string& folder) {
  test::seed(4);
  const torch::nn::Linear linear(6, 3);
  const Batch batch(
      {{"a", at::randn({14, 2, 2})}, {"b", at::randn({14, 2})}, {"label", at::randint(3, {14}, at::kLong)}});
  const Model model = adapt(linear, [](torch::nn::Linear& self, const MicroBatch& micro) {
    return self->forward(at::cat({micro["a"].flatten(1), micro["b"]}, 1));
  });
  export_to(folder, model, cross_entropy_loss({.label_smoothing = 0.1}, "label"), batch,
            {.task = "classification",
             .loss = "cross_entropy",
             .label_smoothing = 0.1,
             .model = "linear",
             .sizes = {6, 3},
             .activation = {},
             .inputs = {"a", "b"},
             .target = "label"});
}

TEST(CheckExport, AgreesOnEveryActivationAndOnALinearClassifier) {
  const std::string root = test::fresh_folder();
  std::string folders = root + "/linear";
  export_classifier(root + "/linear");
  for (const std::string activation : {"relu", "gelu", "gelu_tanh", "tanh", "silu"}) {
    export_mlp(root + "/" + activation, activation);
    folders += " " + root + "/" + activation;
  }
  const std::optional<Checked> checked = check_export(folders);
  if (!checked) GTEST_SKIP() << "no .venv/bin/python";
  EXPECT_EQ(checked->exit_code, 0) << checked->output;
  EXPECT_THAT(checked->output, HasSubstr("is the exported one, both ways"));
}

TEST(CheckExport, FindsAGradientThatIsNotTheBatchs) {
  const std::string folder = test::fresh_folder();
  const Loss per_micro = test::mean_loss([](const MicroBatch&) { return 1.0; });
  const Verdict verdict =
      export_to(folder, test::view_of(test::small_net()), per_micro, test::rows_of(12, 4, 2), small_mlp());
  EXPECT_EQ(verdict.outcome, Outcome::different);
  const std::optional<Checked> checked = check_export(folder);
  if (!checked) GTEST_SKIP() << "no .venv/bin/python";
  EXPECT_EQ(checked->exit_code, 1) << checked->output;
  EXPECT_THAT(checked->output, HasSubstr("DIFFERS"));
}

TEST(CheckExport, SaysWhatItCannotUse) {
  const std::optional<Checked> checked = check_export(test::fresh_folder());
  if (!checked) GTEST_SKIP() << "no .venv/bin/python";
  EXPECT_EQ(checked->exit_code, 2);
  EXPECT_THAT(checked->output, HasSubstr("manifest.json"));
  EXPECT_THAT(checked->output, testing::Not(HasSubstr("Traceback")));
}

}  // namespace
}  // namespace accrue
