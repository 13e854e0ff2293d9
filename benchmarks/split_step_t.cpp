// SPDX-License-Identifier: Apache-2.0
// Workload T through the library: Linear(10, 1), MSE, SGD 0.01, 16 x 4. Prints one JSON object with the
// seconds of each update. usage: split_step_t FOLDER THREADS WARM_UP UPDATES
#include <ATen/Parallel.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "accrue/accrue.h"
#include "accrue/base/clock.h"
#include "accrue/data/tensor_file.h"
#include "models/linear.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: split_step_t FOLDER THREADS WARM_UP UPDATES\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/T/";
  at::set_num_threads(std::atoi(argv[2]));
  const int warm_up = std::atoi(argv[3]);
  const int updates = std::atoi(argv[4]);

  const accrue::Batch data(accrue::load_tensors(folder + "train.safetensors", accrue::Purpose::data));
  const accrue::Model model = accrue::models::make_linear(10, 1);
  accrue::models::load_weights(model,
                               accrue::load_tensors(folder + "weights.safetensors", accrue::Purpose::model),
                               folder + "weights.safetensors");
  accrue::GradientBuffer gradients(model);
  accrue::Updater updater(gradients, accrue::Sgd{.lr = 0.01});
  accrue::SplitStep step(model, accrue::mse_loss(), updater, {.micro_batch = 16});

  std::vector<double> seconds;
  double first_loss = 0;
  double last_loss = 0;
  for (int update = 0; update < warm_up + updates; ++update) {
    const accrue::Stopwatch clock;
    last_loss = step(data.rows(64L * update % data.size(), 64)).loss;
    seconds.push_back(clock.seconds());
    if (update == 0) first_loss = last_loss;
  }
  std::printf("{\"seconds\": [");
  for (int update = warm_up; update < warm_up + updates; ++update) {
    std::printf("%s%.9f", update == warm_up ? "" : ", ", seconds[static_cast<size_t>(update)]);
  }
  std::printf("], \"first_loss\": %.9g, \"last_loss\": %.9g}\n", first_loss, last_loss);
}
