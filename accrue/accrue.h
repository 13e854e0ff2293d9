// SPDX-License-Identifier: Apache-2.0
// The library's public surface, in the order of the stages. Nothing here includes torch/torch.h.
#pragma once

#include "accrue/accumulate/gradient_buffer.h"
#include "accrue/accumulate/window.h"
#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/batch/batch.h"
#include "accrue/batch/batcher.h"
#include "accrue/batch/sampler.h"
#include "accrue/data/data.h"
#include "accrue/microstep/context.h"
#include "accrue/microstep/loss.h"
#include "accrue/microstep/losses.h"
#include "accrue/microstep/model.h"
#include "accrue/microstep/module_adapter.h"
#include "accrue/microstep/slice.h"
#include "accrue/plan/plan.h"
#include "accrue/train/reference_steps.h"
#include "accrue/train/split_step.h"
#include "accrue/train/stream_step.h"
#include "accrue/update/updater.h"
#include "accrue/verify/verify.h"
