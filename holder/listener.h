/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_LISTENER_H_INCLUDED
#define ZC_HOLDER_LISTENER_H_INCLUDED

#include <string>

#include "door_requests.h"
#include "holder.h"
#include "launch.h"

namespace zc::holder {

/**
 * What other hosts ask a host for:
 *
 *   prepare {needs}   a holder for a rank, if the host has what the rank needs
 *   ranks             which ranks were started here below zc-hold, and where they are
 *   move {pid, to}    to tell the zc-hold of this process number to move its rank; answered when
 *                     that has ended
 *
 * Each has a number, which the answer has, too.
 */
class listener {
  public:
    /** @place: HOST:PORT; HOST may be "*". Throws error. */
    listener(settings how, network &net, const std::string &place);
    /** Until a signal ends it; the holders that it has started go on. */
    void run();

  private:
    void answer();
    void answer(const std::string &asker, const nlohmann::json &request);
    void send(const std::string &asker, const nlohmann::json &request, nlohmann::json said);
    nlohmann::json prepare(const nlohmann::json &needs);
    void tell_ranks(const std::string &asker, const nlohmann::json &request);
    void order_move(const std::string &asker, const nlohmann::json &request);
    /** A process of its own, in a PID namespace of its own if @apart; its endpoints. */
    nlohmann::json start_holder(bool apart);

    settings how_;
    network &net_;
    loop loop_;
    signal_source signals_;
    door_requests doors_;
    std::string host_;
    void *socket_;
    bool over_ = false;
};

/** The holder that a listener has started: it never returns. */
[[noreturn]] void run_arrival(const settings &how, network &net, const std::string &address,
                              int ready);

} // namespace zc::holder

#endif
