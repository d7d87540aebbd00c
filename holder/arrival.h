/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_ARRIVAL_H_INCLUDED
#define ZC_HOLDER_ARRIVAL_H_INCLUDED

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holder.h"
#include "image_server.h"
#include "launch.h"
#include "page_filler.h"
#include "promised_room.h"

namespace zc::holder {

/**
 * A holder on a host where the rank was not started: it takes one image, restores the rank,
 * stopped, lets it go when it is given the token, and is its parent until it ends or moves on. One
 * process for each; it may be the first of a PID namespace.
 *
 *   WAITING ── image ──▶ RESTORING ──▶ RESTORED ── go ──▶ HOLDING ── the rank ends ──▶ ENDING
 *
 * If CRIU has left memory out, a page_filler gives it to the rank, from RESTORING on, and until
 * some time in HOLDING: requests to move it on wait for that. Without it the rank is ended, and all
 * that it has started, before the filler is: they would find zeros.
 *
 * In any state "end", and an origin that gives no sign for too long, end the rank and this process.
 */
class arrival : public surroundings {
  public:
    enum class state { WAITING, RESTORING, RESTORED, HOLDING, ENDING };

    /** Listens on any ports of @address. @promised: the room that the rank has here. Throws error.
     */
    arrival(settings how, network &net, const std::string &address, promised_room promised);
    /** What the origin connects with, {"line": endpoint, and the source, "image": endpoint, "key":
     * what it has to show there}. */
    nlohmann::json endpoints() const;
    /** The exit status of this process. */
    int run();

  private:
    void say(const nlohmann::json &what) override { origin_.say(what); }
    network &the_network() override { return net_; }
    nlohmann::json freeze(const std::vector<end> &ends) override;
    void thaw() override;
    void warn(const std::string &text) override;

    void obey(const nlohmann::json &request);
    void obey_later();
    void take_image();
    void note_taken();
    void begin_filling();
    void fill();
    void filler_ended(bool well);
    void cannot_fill();
    bool has_memory() const;
    void restore(const nlohmann::json &manifest);
    void restored();
    void end_half_restored();
    void child_ended();
    void ended(int status);
    void give_up(const std::string &why);

    settings how_;
    network &net_;
    loop loop_;
    signal_source signals_;
    line origin_;
    const tls_key key_ = tls_key::draw();
    std::optional<image_server> image_; /* until the rank is here alone */
    std::optional<memory_directory> images_;
    image_receiver receiver_;
    page_places memory_; /* what CRIU has left out, until the filler has it */
    promised_room promised_;
    state state_ = state::WAITING;
    rank_streams streams_;
    relay relay_;
    std::vector<new_end> new_ends_;
    pid_t pid_ = -1;
    std::optional<held_rank> self_; /* unless its zc-hold was of a version that does not tell */
    clock::time_point since_;
    std::unique_ptr<criu_run> criu_;
    std::unique_ptr<page_filler> filler_;
    std::vector<nlohmann::json> later_; /* requests, when the memory is there */
    std::optional<holder> holder_;
    std::optional<int> status_; /* of the rank, which has ended */
    bool filled_ = false, unfillable_ = false, told_ = false, over_ = false;
};

} // namespace zc::holder

#endif
