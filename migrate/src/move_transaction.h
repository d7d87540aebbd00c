/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "departure.h"
#include "move_party.h"
#include "request.h"
#include "settings.h"
#include "state_file.h"
#include "state_image.h"
#include "successor.h"

namespace zc::migrate {

using control::request;

/**
 * A move, from the safe point where all have met to the new world. Each rank of the old world
 * has one. All are in the same phase, as each phase but rebuild ends in a collective operation:
 *
 *     spawn ──▶ data ──▶ verdict ──▶ link_up ──▶ rebuild ──▶ done
 *       │                   │    go
 *       └────▶ refused ◀────┘
 *
 * where the others run (ZC_MIGRATE_OTHERS=run; Singh & Graham):
 *
 *     spawn ──▶ verdict ──▶ link_up ──▶ rebuild ──▶ done          those who stay
 *       │          │    go              rebuild ──▶ data ──▶ done     those who leave
 *       └▶ refused ◀┘
 *
 *     spawn     each leaver starts its successor on the target host, which answers its greeting;
 *               by way of the disk, its data is being written meanwhile; as one image, that has
 *               been made before
 *     data      each leaver hands its data over: checkpoint, transfer, restore
 *     verdict   has every successor acknowledged everything? Then, is each still there? From here
 *               on its end is that of the job.
 *     link_up   leavers say go: from here on the successors are the ranks; all of the old world and
 *               the successors make the communicators of the new world
 *     rebuild   leavers end: they do not come back; the others go over to the new world
 *     refused   the successors end, and all go on as before
 *
 * Where the others run, the new world is made first, and those who stay go on in it: what they send
 * to a rank that moves waits at its successor, which has its data when the leaver has handed it
 * over. So they wait for no state that they do not need. The price is that what goes wrong with the
 * data is the end of the job, and not of the move alone.
 *
 * Before go only a leaver deals with its successor, by messages that it need not wait for: the
 * other ranks wait for the leaver. So a successor that ends or is stopped costs the move, and
 * nothing else. From go on it is the rank, and its end is that of the job.
 *
 * The successor's part is in job::start_as_successor() and job::take_over().
 */
class move_transaction {
  public:
    enum class phase { spawn, data, verdict, link_up, rebuild, done, refused };

    /** @hello: what this rank tells its successor if it leaves. */
    move_transaction(move_party &party, const settings &chosen, const request &wanted,
                     greeting hello);
    ~move_transaction();
    move_transaction(const move_transaction &) = delete;
    move_transaction &operator=(const move_transaction &) = delete;

    /** Is it made? Does not return in a process whose rank has moved. */
    bool run();

  private:
    phase perform(phase now);
    void wait_for_test(phase now) const;
    phase spawn();
    phase hand_over();
    phase decide();
    phase link_up();
    phase rebuild();
    phase refuse(const std::string &why);
    void write_file();

    bool leaves() const noexcept { return mine_ != nullptr; }
    template <typename Step>
    void attempt(Step step);
    void serve();
    void measure();
    void leave();
    void answer(const std::vector<double> &rebuilt);
    nlohmann::json report(const std::vector<double> &rebuilt) const;

    move_party &party_;
    const settings &settings_;
    const request &wanted_;
    const greeting greeting_;
    const double begin_;
    std::unique_ptr<state_image> image_; /* as one image in memory: this rank's data */
    std::unique_ptr<departure> mine_;    /* if this rank leaves */
    std::string complaint_;              /* this rank's, "" if none */
    std::unique_ptr<state_file> file_;   /* by way of the disk: this rank's data */
    double committed_ = 0;               /* when the leavers had said go */
    effort_of_all told_;
};

} // namespace zc::migrate
