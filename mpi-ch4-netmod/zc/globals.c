/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_impl.h"

MPIDI_ZC_global_t MPIDI_ZC_global;
