/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_REPLAY_H_INCLUDED
#define ZCF_REPLAY_H_INCLUDED

#include <optional>

#include "model.h"
#include "timeline.h"

namespace zc::forecast {

/**
 * Replays what the ranks did, and how their waiting for each other would have
 * been with another protocol.
 *
 * A rank's time between its calls is kept as it was. A call ends when all that
 * it waits for is there, plus what it took beyond that when it was recorded.
 * What it waits for is, of a message:
 *
 *   stock, small      sent, and the transfer
 *   stock, large      both sides are in a call that waits, and the transfer
 *                     (sender and receiver): the first such call after it was posted
 *   zc, sent late     both have posted it, and the transfer; below overlap_bytes as stock
 *   zc, sent early    sender: sent, and the transfer (a synchronous one: and its receive
 *                     posted); receiver: sent, and the transfer, and if
 *                     it has passed already the delivery from landing memory. Without
 *                     landing memory as sent late.
 *
 * of a probe the message that its rank receives next, and of a collective the beginning of
 * the others' calls, by its definition. Transfers of ch4:zc that begin when others
 * are under way wait for their links (links). With the stock protocol the replay gives
 * the recorded times again.
 */
class replay {
  public:
    replay(const zct::run &run, const std::vector<message> &messages, const timeline &steps,
           const network &network);

    /** When each rank came to MPI_Finalize; nothing if the order cannot be replayed. */
    std::optional<std::vector<std::int64_t>> stock() const;
    /** @only: by message, whether ch4:zc does so with it; the others travel as recorded. */
    std::optional<std::vector<std::int64_t>> with(const zc_model &model,
                                                  const std::vector<bool> *only = nullptr) const;

    /** Did the MPI library hold the sender of such a message until its receive was posted? */
    bool holds(const message &m) const;

  private:
    friend class replay_pass;
    const zct::run &run_;
    const std::vector<message> &messages_;
    const timeline &timeline_;
    const network &network_;
    std::uint64_t held_from_[2]; /* bytes; between hosts, on one */
};

} // namespace zc::forecast

#endif
