/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_LIVENESS_SERVER_H_INCLUDED
#define ZC_HOLDER_LIVENESS_SERVER_H_INCLUDED

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "descriptor.h"
#include "loop.h"

namespace zc::holder {

/**
 * Connections that last as long as this process, which lasts as long as its rank. Processes of
 * other worlds, which no launcher ends with the rank, find out by them that a rank has ended while
 * it was away (mpi-ch4-netmod/zc/zc_liveness.h). Each is sent the token, and nothing else; what is
 * received ends it.
 *
 * They take at most half of the descriptors that this process may have. More than that are ended at
 * once: their processes do not notice the end of the rank, and say so.
 */
class liveness_server {
  public:
    /** Listens at all addresses of this host. @patience: this process is gone, for others, if its
     * host gives no sign for so long; and what is at the other end of a connection is for this one.
     * Throws error. */
    liveness_server(loop &events, std::chrono::seconds patience);
    ~liveness_server();
    liveness_server(const liveness_server &) = delete;
    liveness_server &operator=(const liveness_server &) = delete;
    /** What the rank is told, a line: where that is, the token, and the patience. */
    std::string order() const;
    std::size_t connections() const { return clients_.size(); }

  private:
    void listen();
    void accept();
    void look_at_clients();
    void forget(int client);
    loop &loop_;
    std::chrono::seconds patience_;
    std::uint64_t token_;
    descriptor socket_, epoll_; /* of all clients: the loop waits for one descriptor */
    unsigned port_ = 0;
    std::size_t most_;
    std::set<int> clients_;
};

} // namespace zc::holder

#endif
