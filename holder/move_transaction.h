/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_MOVE_TRANSACTION_H_INCLUDED
#define ZC_HOLDER_MOVE_TRANSACTION_H_INCLUDED

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace zc::holder {

/** What a move does to others. None of them waits; what comes of it is told to the transaction. */
class move_parties {
  public:
    virtual ~move_parties() = default;
    virtual void ask_source(const nlohmann::json &request) = 0;
    /** Ask the host for a holder that takes a rank with these needs. */
    virtual void prepare(const nlohmann::json &needs) = 0;
    virtual void ask_target(const nlohmann::json &request) = 0;
    /** Who has asked for the move is told how far the rank is: go() is waited for. @last: it leaves
     * then; else it is ready once more before. */
    virtual void ready(bool last) = 0;
    /** Write on the disk for which copy the token is; returns when it is there. May throw. */
    virtual void commit(std::uint64_t incarnation, bool for_target) = 0;
    /** The rank is the target's from now on: end the source's copy, and relay to the other. */
    virtual void hand_over() = 0;
    /** "ok"; if not, "why", "again" if another rank's move was in the way, which ends, and
     * "other_host" if it was the host that the rank was to go to: both, if that has promised its
     * memory to others. */
    virtual void finished(const nlohmann::json &result) = 0;
};

/**
 * One move of one rank, as its origin sees it: the process that decides, and that the launcher has
 * started. Two copies have no token for a while; the record decides which of them gets it. No I/O.
 *
 *   source                       origin                                target
 *                              EXAMINING
 *     ◀── examine ──────────────  │
 *     ─── needs, refused ──────▶  │
 *                              PREPARING
 *                                 │  ── needs ──────────────────────────▶
 *                                 │  ◀── where to send the image ───────
 *     ◀── copy ─────────────────  │                       if that is worth it, and there is room
 *                              COPYING
 *     ═══ memory, while it runs ═══════════════════════════════════════▶
 *     ─── ready ───────────────▶  │                       if it leaves together with others
 *                               READY
 *     ═══ what it writes ══════════════════════════════════════════════▶
 *                                 │  ◀── go, of whoever has asked
 *     ◀── finish ───────────────  │
 *                             FINISHING
 *     ═══ the last of it ══════════════════════════════════════════════▶
 *     ─── copied ──────────────▶  │
 *                               READY                     if it leaves together with others, with
 *                                 │  ◀── go               or without a copy
 *     ◀── leave ────────────────  │
 *                              LEAVING
 *     ─── detached ────────────▶  │
 *     ◀── send ─────────────────  │
 *                              SENDING
 *     ═══ image ═══════════════════════════════════════════════════════▶
 *     ─── sent ────────────────▶  │
 *                              RESTORING
 *                                 │  ◀── restored, stopped ─────────────
 *                        record: target, fsync
 *     ◀── end ──────────────────  │  ── go, incarnation + 1 ────────────▶
 *                               GOING
 *                                 │  ◀── bound ─────────────────────────
 *                               DONE
 *
 * The last round of a copy takes each rank another time, so there are two of READY: ranks leave at
 * the same moment. Both together last until the time that whoever has asked gave it has passed, or
 * that has gone: then the move goes on, too. A rank that has left already, as a move before has
 * asked it to, waits for nobody.
 *
 * What fails before the rank is detached leaves it as it is: DONE. From then on until the record
 * the source is given the token, by a record that says so, and the target is told to end:
 * RETURNING, until the source is bound. A source that is lost when its image is whole at the target
 * is not missed. After the record the target alone may live: if it is lost, the rank is.
 */
class move_transaction {
  public:
    enum class phase {
        EXAMINING,
        PREPARING,
        COPYING,
        READY,
        FINISHING,
        LEAVING,
        SENDING,
        RESTORING,
        GOING,
        RETURNING,
        DONE
    };
    using time_point = std::chrono::steady_clock::time_point;

    /** @incarnation: of the rank now. @patience: for each answer that is a matter of a moment.
     * @waits: so long at most for go(), in all; zero: not at all. @within: so long the move is to
     * take, if it can be (pre_copy.h); zero: as it likes. */
    move_transaction(move_parties &parties, std::uint64_t incarnation, time_point now,
                     std::chrono::milliseconds patience, std::chrono::milliseconds waits = {},
                     nlohmann::json with = nlohmann::json::array(),
                     std::chrono::milliseconds within = {});
    void begin();
    /** The others are as far as it is, if it is READY. */
    void go(time_point now);
    /** It leaves as soon as it can, whatever others do. */
    void wait_no_longer(time_point now);

    void source_said(const nlohmann::json &what, time_point now);
    /** Of the host: "image", where the image goes, the "key" to be shown there, the "room" that it
     * has for memory before, KiB, whether what is written then is "track"ed, and whether the rank
     * is to go on there before it has its memory, "lazy", and if not, though it was to, why,
     * "not_lazy"; or "refused", and "again" if that is because of other ranks that come. */
    void prepared(const nlohmann::json &what, time_point now);
    void target_said(const nlohmann::json &what, time_point now);
    void target_lost(const std::string &why, time_point now);
    /** Returns whether the rank is lost with it. */
    bool source_lost(const std::string &why, time_point now);
    void tick(time_point now);

    phase now() const { return phase_; }
    /** The rank's, as of the last token. */
    std::uint64_t incarnation() const { return incarnation_; }
    /** The token is the target's. */
    bool is_committed() const { return committed_; }

  private:
    void enter(phase next, time_point now);
    void give_up(const std::string &why, time_point now);
    void other_host_fails(const std::string &why, time_point now);
    void become_ready(time_point now);
    void ask_to_leave(time_point now);
    void order_to_leave();
    void commit(time_point now);
    void finish(bool well);
    std::chrono::milliseconds left_until_late(time_point now) const;
    bool waits_too_long(time_point now) const;
    void note(const nlohmann::json &what, const char *from, const char *to);

    move_parties &parties_;
    std::uint64_t incarnation_;
    std::chrono::milliseconds patience_, waits_, within_;
    double rest_ms_ = 0;  /* that the move takes, once the rank leaves, as far as that is known */
    nlohmann::json with_; /* ranks that leave at the same time */
    double waited_ms_ = 0;
    phase phase_ = phase::EXAMINING;
    time_point begin_, since_;
    std::uint64_t kib_ = 0; /* of the rank's memory */
    bool can_copy_ = false, lazy_ = false;
    /* Memory that has been sent is not thrown away if another rank is just moving. */
    std::string refusal_;
    std::optional<time_point> again_at_;
    std::chrono::milliseconds pause_{250};
    bool copies_ = false, copied_ = false, detached_ = false, sent_ = false, restored_ = false,
         committed_ = false;
    std::string why_;
    std::string image_, key_; /* not in the result: the key is for the source alone */
    nlohmann::json result_ = nlohmann::json::object();
};

} // namespace zc::holder

#endif
