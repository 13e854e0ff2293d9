// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/convolution_winograd.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "accrue/nn/channels_last.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/parts.h"
#include "accrue/nn/products.h"
#include "accrue/nn/rows.h"

namespace accrue::nn {
namespace {

using Shape = ConvolutionShape;

const WinogradKernels<float>& winograd_kernels() {
  return layer_kernels<float>().winograd;
}

int64_t tiles_of(const Shape& shape) {
  return shape.samples * ((shape.out_height + 1) / 2) * ((shape.out_width + 1) / 2);
}

/// Tiles whose points are in memory at once: what stays in the caches, and enough to make the kernels' points
/// for.
int64_t chunk_tiles(const Shape& shape) {
  constexpr int64_t kMostNumbers = 1 << 20, kMost = 192;
  const int64_t wide = std::max(shape.channels, shape.out);
  return std::min(tiles_of(shape), std::clamp<int64_t>(kMostNumbers / (kWinogradPoints * wide), 24, kMost));
}

/// What goes on in one call of a convolution or of its gradients.
class WinogradRun {
 public:
  WinogradRun(const Shape& shape, const at::Tensor& weight) : shape_(shape), chunk_(chunk_tiles(shape)) {
    of_.height = shape.height;
    of_.width = shape.width;
    of_.out_height = shape.out_height;
    of_.out_width = shape.out_width;
    of_.padding = shape.padding;
    of_.in = shape.channels;
    of_.out = shape.out;
    of_.count = chunk_;
    of_.weight = weight.const_data_ptr<float>();
    threads_ = threads_worth(kWinogradPoints * chunk_ * of_.in * of_.out, at::get_num_threads());
    scratch_each_ = kernels_.scratch(of_);
    scratch_ = at::empty({threads_ * scratch_each_}, at::kFloat);
  }

  WinogradConvolution<float>& operands() { return of_; }
  at::Tensor points(int64_t channels) const {
    return at::empty({kernels_.points(channels, chunk_)}, at::kFloat);
  }

  /// Ranges that a chunk's tiles are cut in, so that so many panels of channels are enough parts for all
  /// threads. A tile's output has the same bits in any.
  int64_t ranges(int64_t panels) const {
    return std::clamp<int64_t>((threads_ + panels - 1) / panels, 1, std::max<int64_t>(1, chunk_ / kPiece));
  }
  /// transform(begin, end) of a chunk's tiles and then run(part, scratch) of its parts, for all chunks.
  template <class Transform, class Run>
  void for_chunks(int64_t parts, const Transform& transform, const Run& run) {
    const int64_t tiles = tiles_of(shape_);
    for (of_.first = 0; of_.first < tiles; of_.first += chunk_) {
      of_.count = std::min(chunk_, tiles - of_.first);
      const int64_t pieces = (of_.count + kPiece - 1) / kPiece;
      for_parts(pieces, threads_, [&](int64_t piece, int64_t) {
        transform(of_.count * piece / pieces, of_.count * (piece + 1) / pieces);
      });
      for_parts(parts, threads_, [&](int64_t part, int64_t slot) {
        run(part, scratch_.mutable_data_ptr<float>() + slot * scratch_each_);
      });
    }
  }

 private:
  static constexpr int64_t kPiece = 24;  // tiles that a thread transforms at once
  const WinogradKernels<float>& kernels_ = winograd_kernels();
  const Shape& shape_;
  const int64_t chunk_;
  WinogradConvolution<float> of_;
  int64_t threads_ = 1;
  int64_t scratch_each_ = 0;
  at::Tensor scratch_;
};

}  // namespace

bool fits_winograd(const Shape& shape, at::ScalarType type) {
  if (type != at::kFloat || shape.samples == 0 || shape.channels == 0 || shape.out == 0) return false;
  if (shape.kernel_height != 3 || shape.kernel_width != 3) return false;
  if (shape.stride != 1 || shape.padding > 2) return false;
  const int64_t lanes = winograd_kernels().lanes;
  if (shape.channels % lanes != 0 || shape.out % lanes != 0) return false;
  constexpr int64_t kLeastTiles = 24;  // fewer are not worth a kernel's points
  const int64_t directly = shape.samples * shape.pixels() * shape.taps();
  return tiles_of(shape) >= kLeastTiles && 4 * tiles_of(shape) * kWinogradPoints <= 3 * directly &&
         convolutions_multiply_in_panels();
}

at::Tensor convolve_by_winograd(const Shape& shape, const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& bias) {
  const WinogradKernels<float>& kernels = winograd_kernels();
  const at::Tensor result = at::empty({shape.samples, shape.out, shape.out_height, shape.out_width},
                                      x.options().memory_format(kChannelsLast));
  WinogradRun run(shape, weight);
  const at::Tensor points = run.points(shape.channels), shift = bias.defined() ? bias.contiguous() : bias;
  WinogradConvolution<float>& of = run.operands();
  of.image = x.const_data_ptr<float>();
  of.bias = const_data<float>(shift);
  of.output = result.mutable_data_ptr<float>();
  of.image_points = points.mutable_data_ptr<float>();
  const int64_t panels = shape.out / kernels.lanes, ranges = run.ranges(panels);
  run.for_chunks(
      panels * ranges, [&](int64_t begin, int64_t end) { kernels.transform_image(of, begin, end); },
      [&](int64_t part, float* scratch) {
        const int64_t range = part / panels;
        kernels.convolve(of, of.count * range / ranges, of.count * (range + 1) / ranges, part % panels,
                         scratch);
      });
  return result;
}

at::Tensor winograd_gradients(const Shape& shape, const at::Tensor& x, const at::Tensor& weight,
                              const at::Tensor& of_out, const at::Tensor& weight_sum, bool wants_image) {
  at::Tensor gradient;
  if (!wants_image && !weight_sum.defined()) return gradient;
  const WinogradKernels<float>& kernels = winograd_kernels();
  WinogradRun run(shape, weight);
  const at::Tensor of_output_points = run.points(shape.out);
  WinogradConvolution<float>& of = run.operands();
  of.of_output = of_out.const_data_ptr<float>();
  of.of_output_points = of_output_points.mutable_data_ptr<float>();
  at::Tensor image_points;
  if (wants_image) {
    gradient = at::empty({shape.samples, shape.channels, shape.height, shape.width},
                         of_out.options().memory_format(kChannelsLast))
                   .zero_();
    of.of_image = gradient.mutable_data_ptr<float>();
  }
  if (weight_sum.defined()) {
    image_points = run.points(shape.channels);
    of.image = x.const_data_ptr<float>();
    of.image_points = image_points.mutable_data_ptr<float>();
    of.weight_sum = weight_sum.mutable_data_ptr<float>();
  }
  const int64_t panels = shape.channels / kernels.lanes;
  const PanelBlocks outputs(shape.out, kWinogradOutputs, 1);
  const int64_t of_image = wants_image ? 1 : 0, blocks = weight_sum.defined() ? outputs.parts : 0;
  run.for_chunks(
      panels * (of_image + blocks),
      [&](int64_t begin, int64_t end) {
        kernels.transform_of_output(of, begin, end);
        if (weight_sum.defined()) kernels.transform_image(of, begin, end);
      },
      [&](int64_t part, float* scratch) {
        const int64_t panel = part % panels, block = part / panels - of_image;
        if (block < 0) return kernels.add_image_gradient(of, panel, scratch);  // the longest ones first
        kernels.add_weight_gradient(of, outputs.border(block), outputs.border(block + 1), panel, scratch);
      });
  return gradient;
}

}  // namespace accrue::nn
