/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "departure.h"
#include "image.h"
#include "registry.h"

namespace zc::migrate {

/** What it took, of all ranks. */
struct effort_of_all {
    std::vector<double> most = std::vector<double>(4); /* of any, ms: spawn, checkpoint, transfer,
                                                           restore */
    std::vector<double> sum = std::vector<double>(3);  /* bytes: of images, of zeros left out, of
                                                           data */
};

/** What a move needs of this rank's process, and of the other ranks: job_in_move has it. */
class move_party {
  public:
    virtual ~move_party() = default;

    virtual int rank() const noexcept = 0;

    /* Collective over the old world. */
    /** All hear the first complaint, "" if there is none. */
    virtual std::string agree(const std::string &complaint) = 0;
    virtual std::vector<double> greatest(std::vector<double> values) = 0;
    virtual std::vector<double> total(std::vector<double> values) = 0;

    /** Collective: everyone has everyone's text, by rank. */
    virtual std::vector<std::string> gather(const std::string &text) = 0;

    /** This rank leaves: what the other leavers have to know for that. Throws error. */
    virtual std::string invite() = 0;
    /** Rank 0: successors that stand by are told whose they are. @all: invitations, by rank. */
    virtual void introduce(const std::vector<std::string> &all) = 0;
    /** A successor on the host where it is to go, greeted; @all: invitations, by rank. Throws
     * error. */
    virtual std::unique_ptr<departure> start_successor(const std::vector<std::string> &all) = 0;
    virtual const registry &data() const noexcept = 0;
    virtual image_header header() const = 0;

    /** The request is over; rank 0 answers it with @text. */
    virtual void outcome(const std::string &text) = 0;
    /** Rank 0: when it came, and when it was found that it can be carried out. */
    virtual double asked() const noexcept = 0;
    virtual double examined() const noexcept = 0;

    /** The move is made, and the successor is about to be the rank: leave it what it will take. */
    virtual void let_go() = 0;
    /** Collective over the old world and the successors: the new world. @mine if this rank leaves.
     */
    virtual void link_up(departure *mine) = 0;
    /** Let the program release what hangs on the old world. */
    virtual void release() = 0;
    /** Collective over the old world. */
    virtual void give_up_old_world() = 0;
    /** Collective over the new world, its successors included. */
    virtual void enter_new_world() = 0;
    /** Collective over the new world: what it took, and how long those who stayed were held. */
    virtual std::vector<double> rebuild_world(double begin) = 0;

    /** The others run: leavers, and rank 0, have agreed for the last time. Collective over these.
     */
    virtual void part() = 0;
    /** Rank 0, which stays while the others run: what @text makes of it is the outcome when the
     * leavers have told what it took. Returns at once. */
    virtual void report_later(std::function<std::string(const effort_of_all &)> text) = 0;

    /** Rank 0 has moved: refuse requests here, then be found here no longer. */
    virtual void close_door() = 0;
    virtual void close_socket() = 0;
    /** Does not return: the rank has moved. */
    virtual void leave() = 0;
    /** Does not return. */
    virtual void end_job(const std::string &why) = 0;

    /** Let MPI answer others. */
    virtual void make_progress() = 0;
};

} // namespace zc::migrate
