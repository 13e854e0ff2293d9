// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/ledger.h"

#include <gtest/gtest.h>

namespace accrue::memory {
namespace {

// Tutorial C's net: 4 -> 16 -> ReLU -> 2, 114 parameters in fp32.
const Ledger kTutorial{.parameters = 456, .gradients = 456, .optimizer_state = 912};

TEST(Ledger, TableHasEveryRowAndTheTwoSentences) {
  EXPECT_EQ(
      describe(kTutorial),
      "  parameters               456 B  stays for the whole run\n"
      "  gradients                456 B  stays for the whole run\n"
      "  optimizer_state          912 B  stays for the whole run\n"
      "  activations          not known  follows the micro-batch\n"
      "  workspace            not known  follows the micro-batch\n"
      "  predicted            not known  peak of the process\n"
      "num_micro_steps changes only the activations and their workspace: more micro-steps, smaller "
      "micro-batches.\n"
      "Parameters, gradients and optimizer state (1.8 KiB) do not shrink, whatever num_micro_steps is.\n");
}

TEST(Ledger, GradientsOfTheCallerAreARowOfTheirOwn) {
  Ledger ledger = kTutorial;
  ledger.caller_gradients = 456;
  EXPECT_NE(describe(ledger).find("  caller_gradients         456 B  the most that came at once\n"),
            std::string::npos);
  EXPECT_EQ(ledger.long_lived(), 456 + 456 + 456 + 912);
}

TEST(Ledger, JsonHasNullForWhatIsNotKnown) {
  EXPECT_EQ(categories_json(kTutorial),
            R"({"parameters":456,"gradients":456,"optimizer_state":912,"masters":0,"average":0,)"
            R"("activations":null,"workspace":null,)"
            R"("input_data":null,"rounding":null,"outside":null})");
  Ledger ledger = kTutorial;
  ledger.caller_gradients = 456;
  ledger.activations = 1024;
  ledger.workspace = 0;
  EXPECT_EQ(categories_json(ledger),
            R"({"parameters":456,"gradients":912,"optimizer_state":912,"masters":0,"average":0,)"
            R"("activations":1024,"workspace":0,)"
            R"("input_data":null,"rounding":null,"outside":null})");
}

TEST(Ledger, MastersAndAverageAreRowsOfTheirOwnAndMastersCountAsOptimizerStateInJson) {
  Ledger ledger = kTutorial;
  ledger.masters = 100;
  ledger.average = 10;
  EXPECT_EQ(ledger.long_lived(), 456 + 456 + 912 + 100 + 10);
  const std::string text = describe(ledger);
  EXPECT_NE(text.find("  optimizer_state          912 B  stays for the whole run\n"
                      "  masters                  100 B  stays for the whole run\n"
                      "  average                   10 B  stays for the whole run\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Parameters, gradients, optimizer state, masters and average (1.9 KiB) do not shrink, "
                      "whatever num_micro_steps is.\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(categories_json(ledger),
            R"({"parameters":456,"gradients":456,"optimizer_state":1012,"masters":100,"average":10,)"
            R"("activations":null,"workspace":null,)"
            R"("input_data":null,"rounding":null,"outside":null})");
}

TEST(Ledger, ShowsWhatWasForetoldBesideWhatWasMeasured) {
  Ledger ledger = kTutorial;
  ledger.activations = int64_t{6} << 20;
  ledger.measured_activations = int64_t{7} << 20;
  ledger.outside = int64_t{100} << 20;
  ledger.predicted = int64_t{200} << 20;
  ledger.measured = int64_t{206} << 20;
  ledger.budget = int64_t{256} << 20;
  ledger.phases = {{"forward", 1024}, {"backward", 2048}};
  ledger.modules = {{"layer1", 64, 32, 128, 512, true}, {"fc", 16, 16, 0, {}, false}};
  const std::string text = describe(ledger);
  for (const char* part :
       {"  activations            6.0 MiB  follows the micro-batch, 7.0 MiB measured\n",
        "  outside              100.0 MiB  of the process, no tensors", "  predicted            200.0 MiB  ",
        "  measured             206.0 MiB  peak of the process so far, 3.0 % above predicted\n",
        "  budget               256.0 MiB  of the process\n",
        "most tensor bytes in each phase: forward 1.0 KiB, backward 2.0 KiB\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(
      modules_text(ledger),
      "  layer1  parameters 64 B, gradients 32 B, optimizer state 128 B, activations 512 B (recomputed)\n"
      "  fc      parameters 16 B, gradients 16 B, optimizer state 0 B\n");
  const std::string json = to_json(ledger);
  for (
      const char* part :
      {R"("measured":{"activations":7340032,"workspace":null})", R"("predicted_peak_bytes":209715200)",
       R"("budget_bytes":268435456)", R"("phases":{"forward":1024,"backward":2048})",
       R"({"name":"fc","parameters":16,"gradients":16,"optimizer_state":0,"activations":null,"is_recomputed":false})"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
}

}  // namespace
}  // namespace accrue::memory
