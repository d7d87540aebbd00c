/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_ORIGIN_H_INCLUDED
#define ZC_HOLDER_ORIGIN_H_INCLUDED

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holder.h"
#include "job_name.h"
#include "launch.h"
#include "liveness_server.h"
#include "move_transaction.h"
#include "request_server.h"

namespace zc::holder {

/** What the launcher has given, and how the rank is told to leave. */
struct launched {
    rank_of_job about;
    rank_process rank;
    descriptor orders;
    std::vector<end> ends;
    nlohmann::json credentials; /* as credentials() has them */
    std::string not_movable;    /* why; empty: it can move */
};

/** Starts @words with what the launcher has given, which this process then has no more, and so that
 * it can move: in a user namespace if CRIU needs one. If that cannot be, it says so and starts them
 * all the same. Throws error. */
launched start_rank(const std::vector<std::string> &words, const settings &how,
                    const signal_source &signals);

/**
 * What the launcher has started, and waits for: it stays. As long as the rank is here it is its
 * parent, and what the rank reads and writes does not pass through it. When the rank has moved it
 * has the rank's streams, and relays. It decides about each move, and writes the record.
 *
 *   HERE ── first move ──▶ ELSEWHERE ── further moves ──▶ ELSEWHERE
 */
class origin : public surroundings, public move_parties {
  public:
    origin(settings how, launched what, signal_source &signals);
    ~origin() override;
    origin(const origin &) = delete;
    origin &operator=(const origin &) = delete;
    /** The status of wait(2) with which the rank has ended. */
    int run();

  private:
    /* surroundings, of the rank that is here */
    void say(const nlohmann::json &what) override;
    network &the_network() override;
    nlohmann::json freeze(const std::vector<end> &ends) override;
    void thaw() override {}
    void warn(const std::string &text) override;

    /* move_parties */
    void ask_source(const nlohmann::json &request) override;
    void prepare(const nlohmann::json &needs) override;
    void ask_target(const nlohmann::json &request) override;
    void ready(bool last) override;
    void commit(std::uint64_t incarnation, bool for_target) override;
    void hand_over() override;
    void finished(const nlohmann::json &result) override;

    void requested(int client, const nlohmann::json &request);
    nlohmann::json with_liveness(nlohmann::json request);
    void begin_move(int client, const nlohmann::json &request);
    void has_gone(int client);
    nlohmann::json status() const;
    void take_streams();
    void host_answered();
    void signalled();
    void step();
    void source_says(const nlohmann::json &what);
    void ask_host();
    void switch_over();
    void end_move();
    void look_after_lines();
    void lost(const std::string &why);
    std::unique_ptr<line> connect(const std::string &endpoint);
    void drop(std::unique_ptr<line> &one);

    settings how_;
    nlohmann::json credentials_; /* of the rank, outside of user namespaces */
    rank_of_job about_;
    loop loop_;
    signal_source &signals_;
    std::vector<end> launch_ends_;
    std::optional<network> network_;
    std::optional<holder> here_;
    std::unique_ptr<request_server> requests_;
    std::optional<liveness_server> liveness_; /* from the first move on */
    bool said_not_watched_ = false;
    std::string record_;

    std::uint64_t incarnation_ = 0;
    std::string place_;               /* an endpoint of a listener; empty: here */
    std::string host_name_, to_name_; /* of where it is, and goes */
    rank_streams streams_;
    relay relay_;
    descriptor errors_; /* the rank's, for what this process has to say */
    std::unique_ptr<line> current_;

    std::unique_ptr<move_transaction> move_;
    int client_ = -1; /* which has asked for it, while that waits */
    std::string to_;  /* where it goes */
    void *host_ = nullptr;
    std::string question_;     /* for it, not sent yet */
    std::uint64_t number_ = 0; /* of what it was asked */
    std::unique_ptr<line> target_;
    /* What was told to end is forgotten when it has heard that, or at kFarewell. */
    std::unique_ptr<line> leaving_;
    clock::time_point farewell_;
    bool handing_over_ = false, finished_ = false; /* at the end of the turn */
    std::vector<int> kept_signals_;                /* for the copy that lives */
    std::optional<int> status_;
};

} // namespace zc::holder

#endif
