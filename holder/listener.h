/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_LISTENER_H_INCLUDED
#define ZC_HOLDER_LISTENER_H_INCLUDED

#include <cstdint>
#include <map>
#include <string>

#include "door_requests.h"
#include "holder.h"
#include "launch.h"
#include "promised_room.h"
#include "store_room.h"

namespace zc::holder {

/**
 * What other hosts ask a host for:
 *
 *   prepare {needs,   a holder for a rank, if the host has what the rank needs, and room for it
 *            ahead,   that is promised to nobody else (promised_room.h), or else "again"; whether
 *            lazy}    memory is sent ahead of the image, and whether it is to run before it has its
 *                     memory
 *   ranks             which ranks were started here below zc-hold, and where they are
 *   move {pid, to,    to tell the zc-hold of this process number to move its rank, within this
 *         within_ms,  time if it can; answered when
 *         waits_ms}   that has ended. If it leaves together with others, for which it waits so long
 *                     at most, "said": "ready" comes before, once or twice. Then the asker gives a
 *                     sign now and then, and without one for kAskerPatience the rank goes alone:
 *   wait              such a sign
 *   go                the others are ready, too
 *
 * Each has a number, which the answer has, too: of wait and go that of the move.
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
    nlohmann::json prepare(const nlohmann::json &request);
    /** For a rank that comes: what it may take, and the @promise; or why there is no room, and
     * whether there is @again if what others were promised is taken, or is not. */
    std::string find_room(const rank_room &rank, room_offer &offer, promised_room &promise,
                          bool &again);
    void tell_ranks(const std::string &asker, const nlohmann::json &request);
    void order_move(const std::string &asker, const nlohmann::json &request);
    void of_move(const nlohmann::json &request, bool go);
    void tick();
    /** A process of its own, in a PID namespace of its own if @apart; its endpoints. It has the
     * @promise, too. */
    nlohmann::json start_holder(const nlohmann::json &needs, const promised_room &promise);

    settings how_;
    network &net_;
    loop loop_;
    signal_source signals_;
    door_requests doors_;
    /** A rank that is ready to leave, and waits for others. */
    struct waiting_move {
        int door; /* of doors_ */
        clock::time_point sign;
    };
    using waiting_moves = std::map<std::uint64_t, waiting_move>; /* by their numbers */
    void let_go(waiting_moves::iterator which, bool alone);
    waiting_moves waiting_;
    std::string host_;
    void *socket_;
    bool over_ = false, said_no_promises_ = false;
};

/** The holder that a listener has started: it never returns. */
[[noreturn]] void run_arrival(const settings &how, network &net, const std::string &address,
                              int ready, int promise);

} // namespace zc::holder

#endif
