/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCH_PORTS_H_INCLUDED
#define ZCH_PORTS_H_INCLUDED

#include <string>

namespace zc::holder {

/** Where zc-hold --listen is unless another port is named: one for each user, below those of zcmd.
 */
int default_port(unsigned uid);

/** The endpoint of zc-hold --listen at @place: HOST, or HOST:PORT, or an endpoint. */
std::string listener_at(const std::string &place);

} // namespace zc::holder

#endif
