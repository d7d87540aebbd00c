/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TEST_PROGRAMS_H_INCLUDED
#define ZCP_TEST_PROGRAMS_H_INCLUDED

#include "receive_trace.h"

namespace zcp_test {

/* Made-up programs whose receives differ from those of the recorded ones: each
 * is what one rank receives, about half of it sent before it was posted. */

/** Neighbours send as many particles as there happen to be; buffers stay. */
zc::report::trace particles();
/** The same, packed one behind the other: where one begins depends on those before it. */
zc::report::trace packed_particles();
/** Three buffers in turn per neighbour, the next message on its way before the last is received. */
zc::report::trace triple_buffers();
/** A mesh refined every so often: other neighbours, blocks and buffers from the allocator. */
zc::report::trace adaptive_mesh();
/** A master with four receives from anyone posted, workers of uneven speed. */
zc::report::trace any_source_ring();
/** A master with one buffer, and workers that come and go. */
zc::report::trace job_queue();
/** The tag is the number of the time step. */
zc::report::trace step_tags();
/** A communicator for each of thousands of solves, freed afterwards. */
zc::report::trace communicator_churn();
/** Each message goes into a buffer of its own, from malloc(). */
zc::report::trace allocator_churn();
/** Factorisation: panels shrink and move on along the matrix, tags go round. */
zc::report::trace panels();
/** Two phases by turns, each with its own senders, sizes and buffers. */
zc::report::trace alternating_phases();
/** 2,000 peers, one buffer each. */
zc::report::trace many_peers();
/** Nothing to learn. */
zc::report::trace random_addresses();
/** Nor from sizes. */
zc::report::trace random_sizes_and_addresses();

} // namespace zcp_test

#endif
