/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_events.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    play_events(data, size);
    return 0;
}
