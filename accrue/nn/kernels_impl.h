// SPDX-License-Identifier: Apache-2.0
// Included by one source for each instruction set.
#pragma once

#include "accrue/nn/attention_backward_impl.h"
#include "accrue/nn/cross_entropy_impl.h"
#include "accrue/nn/group_norm_impl.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/panels_impl.h"
#include "accrue/nn/rows_impl.h"
#include "accrue/nn/winograd_impl.h"

namespace accrue::nn {
namespace {

template <class Real>
constexpr LayerKernels<Real> kCompiled = {
    .norm = norm<Real>,
    .norm_backward = norm_backward<Real>,
    .activate = activate<Real>,
    .activate_backward = activate_backward<Real>,
    .multiply = multiply<Real>,
    .add = add<Real>,
    .add_columns = add_columns<Real>,
    .scale_rows = scale_rows<Real>,
    .group_norm = group_norm<Real>,
    .group_norm_backward = group_norm_backward<Real>,
    .attention_scratch = attention_scratch<Real>,
    .attend = attend<Real>,
    .attend_backward = attend_backward<Real>,
    .cross_entropy = cross_entropy<Real>,
    .panels = {.lanes = kPanelLanes<Real>,
               .scratch = panel_scratch<Real>,
               .forward = panel_forward<Real>,
               .backward = panel_backward<Real>,
               .add_weight_gradient = panel_weight_gradient<Real>,
               .of_rows = panels_of_rows<Real>,
               .to_rows = panels_to_rows<Real>},
    .winograd = {.lanes = kPanelLanes<Real>,
                 .scratch = winograd_scratch<Real>,
                 .points = winograd_points<Real>,
                 .transform_image = winograd_transform_image<Real>,
                 .transform_of_output = winograd_transform_of_output<Real>,
                 .convolve = winograd_convolve<Real>,
                 .add_image_gradient = winograd_add_image_gradient<Real>,
                 .add_weight_gradient = winograd_add_weight_gradient<Real>}};

}  // namespace
}  // namespace accrue::nn
