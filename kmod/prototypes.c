// SPDX-License-Identifier: GPL-2.0-only
/*
 * A function that is found by its name is called as we believe it to be declared.
 * Where the kernel believes otherwise the module must not build: a call with its
 * arguments in the wrong registers would leave processors with stale translations,
 * and say nothing. The declaration is hidden from modules, so this file, which
 * only compares, is read as a part of the kernel. No code comes of it.
 */
#undef MODULE
#include <linux/build_bug.h>
#include <linux/compiler.h>

#include <asm/tlbflush.h>

#include "zc.h"

static_assert(__same_type(zc_flush_nothing, flush_tlb_mm_range));
