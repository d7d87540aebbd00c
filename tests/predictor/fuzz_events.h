/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TEST_FUZZ_EVENTS_H_INCLUDED
#define ZCP_TEST_FUZZ_EVENTS_H_INCLUDED

#include <cstddef>
#include <cstdint>

/**
 * Reads @data as an engine and a sequence of calls, plays it, and checks after
 * each call what must always hold. Aborts, with a message, if it does not.
 */
void play_events(const uint8_t *data, size_t size);

#endif
