// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/group_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/relu.h>
#include <torch/csrc/autograd/custom_function.h>

#include "accrue/nn/channels_last.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/function.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/parameter_gradient.h"
#include "accrue/nn/rows.h"
#include "accrue/nn/shapes.h"

namespace accrue::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct GroupNormForm {
  int64_t groups;
  double eps;
  bool relu;
};

at::Tensor in_channels_last(const at::Tensor& x, const at::Tensor& weight) {
  return x.defined() ? as_computed(x, weight).contiguous(kChannelsLast) : x;
}

at::Tensor empty_beside(const at::Tensor& x) {
  return at::empty(x.sizes(), x.options().memory_format(kChannelsLast));
}

/// The norm of images [n, C, H, W] with the weights in the compute type.
struct ImageNorm {
  ImageNorm(const at::Tensor& x, const at::Tensor& weight_given, const at::Tensor& bias_given,
            const GroupNormForm& form_given)
      : weight(widened(weight_given).contiguous()),
        bias(as_computed(bias_given, weight_given).contiguous()),
        form(form_given),
        samples(x.size(0)),
        channels(x.size(1)),
        pixels(x.size(2) * x.size(3)) {}

  template <class Real>
  GroupNorm<Real> sample() const {
    return {pixels,   channels, form.groups, const_data<Real>(weight), const_data<Real>(bias),
            form.eps, form.relu};
  }

  /// run(sample, its first element, scratch) for all samples.
  template <class Real, class Run>
  void for_samples(const Run& run) const {
    const int64_t length = pixels * channels, count = kGroupNormScratch * channels;
    const at::Tensor scratch = at::empty({num_parts(samples, length), count}, weight.options());
    for_rows(samples, length, [&](int64_t begin, int64_t end, int64_t part) {
      for (int64_t i = begin; i < end; ++i) run(i, i * length, mutable_data<Real>(scratch) + part * count);
    });
  }

  at::Tensor weight, bias;
  GroupNormForm form;
  int64_t samples, channels, pixels;
};

at::Tensor normed_images(const ImageNorm& norm, const at::Tensor& x, const at::Tensor& residual,
                         const at::Tensor& moments) {
  const at::Tensor out = empty_beside(x);
  in_type_of(x, [&]<class Real>() {
    norm.for_samples<Real>([&](int64_t i, int64_t at, Real* scratch) {
      layer_kernels<Real>().group_norm(
          norm.sample<Real>(), const_data<Real>(x) + at, at_offset(const_data<Real>(residual), at),
          mutable_data<Real>(out) + at, mutable_data<Real>(moments) + 2 * norm.form.groups * i, scratch);
    });
  });
  return out;
}

at::Tensor empty_moments(const at::Tensor& x, const GroupNormForm& form) {
  return at::empty({x.size(0), form.groups, 2}, x.options());
}

struct GroupNormFunction : torch::autograd::Function<GroupNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const std::optional<at::Tensor>& residual,
                            const GroupNormForm& form) {
    context->set_materialize_grads(false);
    const at::Tensor images = in_channels_last(x, weight);
    const at::Tensor moments = empty_moments(images, form);
    const at::Tensor added = residual ? in_channels_last(*residual, weight) : at::Tensor();
    const at::Tensor out = normed_images(ImageNorm(images, weight, bias, form), images, added, moments);
    context->save_for_backward(
        {images, weight, bias, moments, form.relu && added.defined() ? out : at::Tensor()});
    context->saved_data["adds"] = added.defined();
    context->saved_data["groups"] = form.groups;
    context->saved_data["eps"] = form.eps;
    context->saved_data["relu"] = form.relu;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list of_output) {
    forbid_create_graph("group_norm");
    variable_list gradients(5);
    if (!of_output[0].defined()) return gradients;
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &out = saved[4];
    const ImageNorm norm(x, saved[1], saved[2],
                         {context->saved_data["groups"].toInt(), context->saved_data["eps"].toDouble(),
                          context->saved_data["relu"].toBool()});
    const at::Tensor of_out = of_output[0].contiguous(kChannelsLast);
    const at::Tensor gradient = empty_beside(x);
    const bool of_added = context->saved_data["adds"].toBool() && context->needs_input_grad(3);
    at::Tensor masked;
    if (out.defined()) masked = of_added ? empty_beside(x) : gradient;
    const at::Tensor sums = at::empty({2, norm.samples, norm.channels}, x.options());
    const ParameterGradient of_weight(saved[1], context->needs_input_grad(1));
    const ParameterGradient of_bias(saved[2], context->needs_input_grad(2));
    in_type_of(x, [&]<class Real>() {
      Real* const weight_sums = mutable_data<Real>(sums);
      Real* const shift_sums = weight_sums + norm.samples * norm.channels;
      norm.for_samples<Real>([&](int64_t i, int64_t at, Real* scratch) {
        layer_kernels<Real>().group_norm_backward(
            norm.sample<Real>(), const_data<Real>(x) + at, at_offset(const_data<Real>(out), at),
            const_data<Real>(saved[3]) + 2 * norm.form.groups * i, const_data<Real>(of_out) + at,
            at_offset(mutable_data<Real>(masked), at), mutable_data<Real>(gradient) + at,
            weight_sums + i * norm.channels, shift_sums + i * norm.channels, scratch);
      });
      const auto add = [&](const ParameterGradient& parameter, const Real* from) {
        if (!parameter.is_wanted()) return;
        layer_kernels<Real>().add_columns(norm.samples, norm.channels, from,
                                          mutable_data<Real>(parameter.sum()));
      };
      add(of_weight, weight_sums);
      add(of_bias, shift_sums);
    });
    gradients[0] = gradient;
    gradients[1] = of_weight.result();
    gradients[2] = of_bias.result();
    if (of_added) gradients[3] = out.defined() ? masked : of_out;
    return gradients;
  }
};

at::Tensor group_normed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        const at::Tensor& residual, const GroupNormForm& form) {
  const int64_t channels = x.dim() >= 2 ? x.size(1) : 0;
  const bool fit = form.groups >= 1 && channels >= form.groups && channels % form.groups == 0 &&
                   is_vector(weight, channels) && is_vector(bias, channels) &&
                   (!residual.defined() || residual.sizes() == x.sizes());
  check_shapes(fit, "group_norm", x, weight, bias,
               "x [n, C, ...], weight and bias [C], C divisible by " + std::to_string(form.groups) +
                   " groups, a residual shaped as x");
  if (x.dim() == 4 && x.numel() > 0 && takes_fast({x, weight, bias, residual})) {
    if (needs_graph({x, weight, bias, residual})) {
      return GroupNormFunction::apply(x, weight, bias, if_there(residual), form);
    }
    const at::Tensor images = in_channels_last(x, weight);
    return normed_images(ImageNorm(images, weight, bias, form), images, in_channels_last(residual, weight),
                         empty_moments(images, form));
  }
  at::Tensor values = at::group_norm(as_computed(x, weight), form.groups, widened(weight),
                                     as_computed(bias, weight), form.eps);
  if (residual.defined()) values = values.add(as_computed(residual, weight));
  return form.relu ? at::relu(values) : values;
}

}  // namespace

at::Tensor group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias,
                      double eps) {
  return group_normed(x, weight, bias, {}, {groups, eps, /*relu=*/false});
}

at::Tensor group_norm_relu(const at::Tensor& x, int64_t groups, const at::Tensor& weight,
                           const at::Tensor& bias, const at::Tensor& residual, double eps) {
  return group_normed(x, weight, bias, residual, {groups, eps, /*relu=*/true});
}

}  // namespace accrue::nn
