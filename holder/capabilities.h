/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_CAPABILITIES_H_INCLUDED
#define ZC_HOLDER_CAPABILITIES_H_INCLUDED

namespace zc::holder {

/* What this process may do (capabilities(7)), in the user namespace in which it is. */

bool has_capabilities_for_criu();
bool has_capabilities_for_time_namespaces();

/** What this process executes next has all its capabilities. Without this a program of a user other
 * than root has none, and ranks are to have none. */
void keep_capabilities();

/** It has those alone that CRIU needs: with some of the others CRIU does what only root can. */
void keep_capabilities_for_criu();

} // namespace zc::holder

#endif
